"""A program in a container: what Kubernetes is told fits its schema, and what it runs answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import kubernetes_validate
import pytest
from operator_folders import SECONDS, write

from operators import manifest
from operators.adapters import containers
from operators.queues.link import MOST_ANSWERED, MOST_BYTES
from operators.queues.resp import Connection
from operators.queues.server import Server

ECHO = """
from servioticy_operator import serve
serve(lambda event, state: event.channels)
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Server]:
    """A store."""
    folder = tmp_path / "store"
    folder.mkdir()
    server = Server(lambda: folder, MOST_BYTES)
    try:
        yield server
    finally:
        server.close()


def test_a_pod_fits_the_schema_and_gives_away_nothing(tmp_path: Path) -> None:
    """With the limits of the manifest, as nobody, on a file system that it cannot write to."""
    folder = write(tmp_path / "a", ECHO, limits={"memory": "64MiB", "processes": 5})
    described = manifest.read((folder / manifest.FILE).read_bytes())
    pod = containers.pod("tried-1", described, "registry.example.org/tried:1", "tried-1-queue")
    policy = containers.reach("tried-1", {"app.kubernetes.io/name": "valkey"}, 6379)
    for each in (pod, policy):
        kubernetes_validate.validate(each, "1.37", strict=True)
    spec = pod["spec"]
    (container,) = spec["containers"]

    assert int(container["resources"]["limits"]["memory"]) > 64 * 1024 * 1024
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["securityContext"]["runAsNonRoot"]
    assert not spec["automountServiceAccountToken"]
    mounted = {each["name"] for each in container["volumeMounts"]}
    assert mounted == {each["name"] for each in spec["volumes"]}
    assert (
        policy["spec"]["podSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    )


def test_what_a_pod_runs_answers_over_two_lists(tmp_path: Path, store: Server) -> None:
    """The command of the container, with the places of this machine, as a user of its own."""
    folder = write(tmp_path / "a", ECHO)
    described = manifest.read((folder / manifest.FILE).read_bytes())
    pod = containers.pod("tried-1", described, "image", "secret")
    asks = Connection(store.address())
    rules = ("+blpop", "+rpush", "+pexpire", "%RW~asked", "%W~answered")
    asks.call("ACL", "SETUSER", "pod", "reset", "on", ">word", *rules)
    place = store.address()._replace(user="pod", password="word")
    said = {"address": place, "takes": "asked", "gives": "answered", "most": MOST_ANSWERED}
    (tmp_path / "settings.json").write_text(json.dumps(said))
    settings = f"{containers.SETTINGS}/settings.json"
    here = {containers.FOLDER: str(folder), settings: str(tmp_path / "settings.json")}
    words = pod["spec"]["containers"][0]["command"]
    command = [sys.executable, *(here.get(each, each) for each in words[1:])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(command, env=environment)
    try:
        ready = asks.call("BLPOP", "answered", SECONDS, seconds=2 * SECONDS)
        question = {"id": "7", "composite": "so/s", "state": None, "events": [{"channels": {}}]}
        asks.call("RPUSH", "asked", json.dumps({"questions": [question]}))
        reply = asks.call("BLPOP", "answered", SECONDS, seconds=2 * SECONDS)
        asks.call("RPUSH", "asked", b"")
        ended = asks.call("BLPOP", "answered", SECONDS, seconds=2 * SECONDS)
        process.wait(SECONDS)
    finally:
        process.kill()
        process.wait()

    assert isinstance(ready, list)
    assert ready[1] == b'{"ready":true}'
    assert isinstance(reply, list)
    assert json.loads(reply[1])["replies"][0]["outputs"] == [  # type: ignore[arg-type]
        {"event": 0, "channels": {}}
    ]
    assert ended == [b"answered", b""]
    assert process.returncode == 0
