"""What Kubernetes is to be told to run a program: its manifest as a pod, and what that may reach.

The image has the program's folder at /operator and what runs it, and the platform's `operators`
room with a Python. Between the pod and the platform are two lists of a store; a secret of the
cluster has, under `settings.json`, what `operators/queues/relay.py` is told: the address, a user
that may use these lists and nothing else, and how many bytes may be under way. In a pod the
program stands beside who carries for it, and could use that user: only its own lists are open to
it, but their size is bounded by the store alone. So it is for programs of one's own.
"""

from __future__ import annotations

from typing import Any

from operators.cgroups import BESIDE_BYTES, BESIDE_PROCESSES
from operators.guest.root import TEMPORARY_BYTES
from operators.manifest import Described

FOLDER = "/operator"
SETTINGS = "/queue"
USER = 10_002
PART_OF = {"app.kubernetes.io/part-of": "servioticy"}


def pod(name: str, described: Described, image: str, secret: str) -> dict[str, Any]:
    """Return a pod of apiVersion v1: limits as the manifest has them, and few rights.

    `name`: of the pod; the image and the secret are named as the cluster knows them.
    """
    manifest = described.manifest
    memory = str(manifest.memory_bytes + BESIDE_BYTES)
    labels = {**PART_OF, "app.kubernetes.io/name": "servioticy-operator", "operator": name}
    container = {
        "name": "operator",
        "image": image,
        "command": [
            *("python3", "-m", "operators.queues.carrier", FOLDER, f"{SETTINGS}/settings.json")
        ],
        "env": [
            {"name": "HOME", "value": "/tmp"},  # noqa: S108  its own
            {"name": "GOMEMLIMIT", "value": str(manifest.memory_bytes * 3 // 4)},
        ],
        "resources": {
            "limits": {"memory": memory, "cpu": "1"},
            "requests": {"memory": memory, "cpu": "100m"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "scratch", "mountPath": "/tmp"},  # noqa: S108  its own
            {"name": "queue", "mountPath": SETTINGS, "readOnly": True},
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {
                "operators/processes": str(manifest.processes + BESIDE_PROCESSES),
                "operators/language": manifest.language,
            },
        },
        "spec": {
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 5,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "hostNetwork": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [
                {
                    "name": "scratch",
                    "emptyDir": {"medium": "Memory", "sizeLimit": str(TEMPORARY_BYTES)},
                },
                {"name": "queue", "secret": {"secretName": secret, "defaultMode": 0o440}},
            ],
        },
    }


def reach(name: str, store: dict[str, str], port: int) -> dict[str, Any]:
    """Return a network policy: the pod reaches the store of these labels, and nobody it."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "labels": PART_OF},
        "spec": {
            "podSelector": {"matchLabels": {"operator": name}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": [
                {
                    "to": [{"podSelector": {"matchLabels": store}}],
                    "ports": [{"protocol": "TCP", "port": port}],
                },
                {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]},
            ],
        },
    }
