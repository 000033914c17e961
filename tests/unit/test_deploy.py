"""The files of `deploy/` fit each other, their schemas, and the settings, commands and ports there
really are.

What they start is not started here: there is neither a cluster nor a way to build an image.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from support.deploy_files import (
    DEPLOY,
    DOCKERFILE,
    KUBERNETES_FILES,
    UNITS,
    documents,
    pods,
    stages,
    units_with,
    variables,
)

from command.cli import PROGRAMS, parser
from command.platform import ALIVE_FILE
from servioticy.metrics.names import METRICS, Metric
from servioticy.settings import Settings, load
from servioticy.settings.declared import DECLARED
from servioticy.settings.loading import by_name

VERSIONS = ("1.31", "1.35")
OTHERS_PORTS = {53, 5432, 9092, 9093}
"""Of DNS, Postgres and Kafka."""
OURS = {value for name, value in by_name(Settings()).items() if name.endswith("_port")}
SETTINGS = {f"SERVIOTICY_{name.upper()}" for name in DECLARED}
SECRETS = {f"SERVIOTICY_{name.upper()}" for name, each in DECLARED.items() if each.secret}
CALL_THE_OUTSIDE = ("api", "delivery", "broker", "functions")
"""Callbacks, sinks, and issuers of tokens."""
PUBLIC = ("8.8.8.8/32", "2001:4860:4860::8888/128")
PRIVATE = (
    "10.0.0.0/8",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "fc00::/7",
    "fe80::/10",
)
STARTS_NOTHING = {
    "environment",
    "network.yaml",
    "scaling.yaml",
    "servioticy.target",
    "settings.yaml",
}
KNOWN = SETTINGS | {ALIVE_FILE}
FILES = sorted(
    each for folder in ("docker", "kubernetes", "systemd") for each in (DEPLOY / folder).iterdir()
)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", KUBERNETES_FILES, ids=lambda file: file.name)
def test_kubernetes_knows_every_word_of_a_manifest(file: Path, version: str) -> None:
    """Strictly: a word that is misspelt would be left out without being told."""
    for each in documents(file):
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_variable_is_a_setting_with_a_value_that_it_takes(file: Path) -> None:
    found = variables(file)

    assert {name for name, _ in found} - KNOWN == set()
    load({name: value for name, value in found if value is not None and name in SETTINGS})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_file_holds_a_secret(file: Path) -> None:
    """They come by reference, from a Secret or from who runs compose; systemd's is a sample."""
    secrets = {name: value for name, value in variables(file) if name in SECRETS}

    assert all(
        value is None or "${POSTGRES_PASSWORD:?" in value or ":PASSWORD@" in value
        for value in secrets.values()
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_command_is_one_that_there_is(file: Path) -> None:
    begins = r"\[servioticy, |\[\"servioticy\", \"|/bin/servioticy "
    given = re.findall(rf"(?:{begins})([a-z]+)", _without_comments(file))

    for each in given:
        assert each in {*PROGRAMS, "migrate"}
        parser().parse_args([each])
    assert given or file.name in STARTS_NOTHING


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_port_is_the_default_of_a_setting(file: Path) -> None:
    text = _without_comments(file)
    numbers = re.findall(
        r"(?:port: |Port: |EXPOSE |port: \"|127\.0\.0\.1:|://[\w.-]+:)(\d+)", text
    )

    assert {int(each) for each in numbers} - OURS - OTHERS_PORTS - {8443} == set()


def test_each_program_has_an_image_that_is_not_root_and_tells_its_health() -> None:
    for name in PROGRAMS:
        words = stages()[name]

        assert words["USER"] == "10001"
        assert words["CMD"] == f'["servioticy", "{name}"]'
        assert "HEALTHCHECK" in words
        assert f"/opt/{name}/bin" in words["ENV"]


def test_each_image_installs_the_part_of_its_program() -> None:
    """And the folders that are copied from are those that are made."""
    text = DOCKERFILE.read_text("utf-8")

    looped = re.search(r"for part in ([a-z ]+); do", text)
    assert looped is not None
    assert set(looped[1].split()) == set(PROGRAMS)
    copied = set(re.findall(r"COPY --from=builder /opt/(\w+) ", text)) - {"servioticy"}
    assert copied == set(PROGRAMS)


def test_pods_are_not_root_and_hold_no_more_rights_than_they_need() -> None:
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["automountServiceAccountToken"] is False
        for each in pod["containers"]:
            own = each["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["readOnlyRootFilesystem"] is True
            assert own["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in each["resources"]["limits"]


def test_what_clients_reach_goes_on_until_no_service_sends_them_there() -> None:
    """A rolled release would else refuse connections, at each pod."""
    reached = {each["metadata"]["name"] for each in _of("Service") if _faces_clients(each)}
    assert reached == {f"servioticy-{each}" for each in ("api", "delivery", "broker")}

    for each in _of("Deployment"):
        pod = each["spec"]["template"]["spec"]
        for container in pod["containers"]:
            waits = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {})
            assert (waits.get("seconds", 0) > 0) is (each["metadata"]["name"] in reached)
            assert waits.get("seconds", 0) < pod["terminationGracePeriodSeconds"] / 2


def _faces_clients(service: dict[str, Any]) -> bool:
    return bool(service["spec"].get("clusterIP") != "None")


def test_kubernetes_does_not_set_our_settings_by_itself() -> None:
    """Of a Service `servioticy-api` it would make SERVIOTICY_API_PORT=tcp://10.0.0.1:8080."""
    services = [each["metadata"]["name"] for each in _of("Service")]
    made = {f"{name.upper().replace('-', '_')}_PORT" for name in services}

    assert made & SETTINGS  # so it is needed
    assert all(pod["enableServiceLinks"] is False for pod in pods())


def test_what_is_selected_is_there() -> None:
    workloads = [*_of("Deployment"), *_of("StatefulSet")]
    named = {each["metadata"]["name"] for each in workloads}

    assert named == {f"servioticy-{each}" for each in PROGRAMS}
    for each in workloads:
        labels = each["spec"]["template"]["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == each["metadata"]["name"]
        assert each["spec"]["selector"]["matchLabels"].items() <= labels.items()
    for each in [*_of("Service"), *_of("PodDisruptionBudget")]:
        selector = each["spec"]["selector"]
        chosen = selector.get("matchLabels", selector)
        assert chosen["app.kubernetes.io/name"] in named
    assert {each["metadata"]["name"] for each in _of("PodDisruptionBudget")} == named
    for each in _of("HorizontalPodAutoscaler"):
        assert each["spec"]["scaleTargetRef"]["name"] in named


def test_what_faces_clients_is_scaled_by_lag() -> None:
    """And nothing is that would only wait."""
    asked = {
        each["spec"]["scaleTargetRef"]["name"].removeprefix("servioticy-"): [
            metric["pods"]["metric"]["name"]
            for metric in each["spec"]["metrics"]
            if metric["type"] == "Pods"
        ]
        for each in _of("HorizontalPodAutoscaler")
    }
    lag = "servioticy_loop_lag_p99_seconds"

    assert asked == {"api": [lag], "delivery": [lag], "broker": [lag], "functions": []}
    tells = {program for each in METRICS if "loop_lag" in each.name for program in _programs(each)}
    assert {name for name, metrics in asked.items() if metrics} <= tells


def _programs(metric: Metric) -> list[str]:
    return metric.program.split(", ")


def test_a_drained_node_takes_no_last_process() -> None:
    for each in _of("PodDisruptionBudget"):
        assert each["spec"]["minAvailable"] == 1
    for each in [*_of("Deployment"), *_of("StatefulSet")]:
        assert each["spec"].get("replicas", 2) > 1
    assert all(each["spec"]["minReplicas"] > 1 for each in _of("HorizontalPodAutoscaler"))


def test_every_secret_comes_by_reference() -> None:
    """What all programs know is named one by one; what one of them knows is in its own Secret."""
    for each in [*_of("Deployment"), *_of("StatefulSet")]:
        (container,) = each["spec"]["template"]["spec"]["containers"]
        own = [source["secretRef"] for source in container["envFrom"] if "secretRef" in source]
        assert own == [{"name": each["metadata"]["name"], "optional": True}]
    for pod in pods():
        for each in pod["containers"]:
            named = {entry["name"]: entry for entry in each["env"] if entry["name"] in SECRETS}
            assert named.keys() == {"SERVIOTICY_DSN", "SERVIOTICY_KAFKA_SASL_PASSWORD"}
            assert all("secretKeyRef" in entry["valueFrom"] for entry in named.values())


def test_whoever_calls_the_outside_may_and_nobody_else() -> None:
    """And reaches nothing of the cluster by it."""
    (outside,) = [
        each for each in _of("NetworkPolicy") if each["metadata"]["name"].endswith("outside")
    ]
    (chosen,) = outside["spec"]["podSelector"]["matchExpressions"]
    (rule,) = outside["spec"]["egress"]
    blocks = [each["ipBlock"] for each in rule["to"]]

    assert set(chosen["values"]) == {f"servioticy-{each}" for each in CALL_THE_OUTSIDE}
    for each in PUBLIC:
        assert any(_lets(block, ip_network(each)) for block in blocks)
    for each in PRIVATE:
        assert not any(_lets(block, ip_network(each)) for block in blocks)


def _lets(block: dict[str, Any], network: IPv4Network | IPv6Network) -> bool:
    """Whether anything of a network is let through."""
    closed = [ip_network(each) for each in block.get("except", ())]
    is_closed = any(_lies_in(network, each) for each in closed)
    return network.overlaps(ip_network(block["cidr"])) and not is_closed


def _lies_in(network: IPv4Network | IPv6Network, other: IPv4Network | IPv6Network) -> bool:
    return network.version == other.version and network.subnet_of(other)  # type: ignore[arg-type]


def test_who_is_scaled_by_lag_has_no_number_of_its_own() -> None:
    """Else each `kubectl apply` would take it back."""
    scaled = {each["spec"]["scaleTargetRef"]["name"] for each in _of("HorizontalPodAutoscaler")}

    for each in _of("Deployment"):
        assert ("replicas" in each["spec"]) is (each["metadata"]["name"] not in scaled)


def test_ports_that_policies_and_probes_name_are_named_by_containers() -> None:
    named = {port["name"] for pod in pods() for each in pod["containers"] for port in _ports(each)}
    policies = yaml.safe_dump([each["spec"] for each in _of("NetworkPolicy")])
    asked = set(re.findall(r"port: ([a-z]+)", policies))

    assert asked <= named
    for pod in pods():
        for each in pod["containers"]:
            own = {port["name"] for port in _ports(each)}
            probes = yaml.safe_dump([each[key] for key in each if key.endswith("Probe")])
            assert set(re.findall(r"port: ([a-z]+)", probes)) <= own


def test_all_that_nobody_lets_in_or_out_stays_where_it_is() -> None:
    nobody = next(
        each for each in _of("NetworkPolicy") if each["metadata"]["name"].endswith("ody")
    )

    assert nobody["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert not {"ingress", "egress"} & nobody["spec"].keys()
    labels = nobody["spec"]["podSelector"]["matchLabels"].items()
    for kind in ("Deployment", "StatefulSet", "Job"):
        for each in _of(kind):
            assert labels <= each["spec"]["template"]["metadata"]["labels"].items()


def test_compose_starts_every_program_after_the_schema() -> None:
    found = yaml.safe_load((DEPLOY / "docker" / "compose.yaml").read_text("utf-8"))["services"]

    for name in PROGRAMS:
        own = found[name]
        assert own["build"]["target"] == name
        assert (DEPLOY / "docker" / own["build"]["context"]).resolve() == DEPLOY.parent
        assert own["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
        assert (
            own["environment"]["SERVIOTICY_DSN"]
            == found["migrate"]["environment"]["SERVIOTICY_DSN"]
        )
        assert own["read_only"]
        assert all(each.startswith("127.0.0.1:") for each in own.get("ports", []))


def test_systemd_understands_the_units(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("there is no systemd-analyze here")
    files = units_with("/bin/true", tmp_path)

    done = subprocess.run([program, "verify", *files], capture_output=True, text=True, check=False)

    ours = [line for line in done.stderr.splitlines() if "servioticy" in line]
    assert (done.returncode, ours) == (0, [])


def test_there_is_a_unit_for_each_program() -> None:
    names = {each.stem.removeprefix("servioticy-") for each in UNITS if each.suffix == ".service"}
    target = (DEPLOY / "systemd" / "servioticy.target").read_text("utf-8")

    assert names == {*PROGRAMS, "migrate"}
    assert all(f"servioticy-{each}.service" in target for each in PROGRAMS)


def _of(kind: str) -> Iterator[dict[str, Any]]:
    for file in KUBERNETES_FILES:
        yield from (each for each in documents(file) if each["kind"] == kind)


def _ports(container: dict[str, Any]) -> list[dict[str, Any]]:
    return list(container.get("ports", []))


def _without_comments(file: Path) -> str:
    return re.sub(r"(?m)^\s*#.*$", "", file.read_text("utf-8"))
