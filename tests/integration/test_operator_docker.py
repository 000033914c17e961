"""Programs in containers, begun by Docker's API: what is asked for, and that they answer."""

from __future__ import annotations

import select
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_docker import FakeDocker
from operator_folders import PROGRAM, SECONDS, Folders, answers, question, until, write

from command import doctor
from operators import manifest
from operators.adapters.docker import Container, Docker, container
from operators.cgroups import BESIDE_BYTES, BESIDE_PROCESSES
from operators.errors import Misbehaved
from operators.guest import carrying
from operators.guest.root import TEMPORARY_BYTES
from operators.instance import Place
from operators.node import Node
from servioticy.settings import Settings, changed

IMAGE = "registry.example.org/programs:1"
MAIN = """
from servioticy_operator import serve
def each(event, state):
    print("seen", event.value("value"), flush=True)
    if event.value("value") == 13:
        raise SystemExit(3)
    state.put("count", state.get("count", 0) + 1)
    return {"count": state.get("count")}
serve(each)
"""


@pytest.fixture
def docker() -> Iterator[FakeDocker]:
    """One whose socket has a short path."""
    with tempfile.TemporaryDirectory() as folder:
        found = FakeDocker(Path(folder))
        yield found
        found.close()


@contextmanager
def node_in(docker: FakeDocker, folder: Path, *, strangers: bool = True) -> Iterator[Node]:
    """Run a node whose programs are in containers."""
    begin = Docker(docker.path, IMAGE).begin
    node = Node(Folders({PROGRAM: folder}), Place(folder.parent, strangers, begin=begin))
    try:
        yield node
    finally:
        node.close()


def test_a_container_is_asked_for_as_dockers_own_client_asks(tmp_path: Path) -> None:
    """With the manifest's limits, no network, nothing to write to, and no way to more rights."""
    types = pytest.importorskip("docker.types", reason="the package docker is not installed")
    folder = write(tmp_path / "a", MAIN, limits={"memory": "64MiB", "processes": 5})
    described = manifest.read((folder / manifest.FILE).read_bytes())
    memory = 64 * 1024 * 1024 + BESIDE_BYTES
    host = types.HostConfig(
        "1.44",
        auto_remove=True,
        binds=[f"{folder}:/operator:ro", f"{carrying.__file__}:/servioticy/carrying.py:ro"],
        cap_drop=["ALL"],
        init=True,
        ipc_mode="none",
        log_config=types.LogConfig(type="none"),
        mem_limit=memory,
        memswap_limit=memory,
        nano_cpus=10**9,
        network_mode="none",
        pids_limit=5 + BESIDE_PROCESSES,
        read_only=True,
        security_opt=["no-new-privileges"],
        tmpfs={"/tmp": f"size={TEMPORARY_BYTES},nosuid,nodev"},
        ulimits=[types.Ulimit(name="nofile", soft=128, hard=128)],
    )
    body = container(described, folder, IMAGE)
    own = dict(each.split("=", 1) for each in body["Env"])
    expected = types.ContainerConfig(
        "1.44",
        IMAGE,
        ["/servioticy/carrying.py", "python3", "main.py"],
        entrypoint=["python3"],
        user="10002:10002",
        stdin_open=True,
        environment=own,
        network_disabled=True,
        working_dir="/operator",
        host_config=host,
        labels={"servioticy.part": "operator", "servioticy.operator": "tried"},
    )

    assert body == {name: each for name, each in expected.items() if each is not None}
    assert not {"PATH", "SERVIOTICY_OPERATOR"} & own.keys()


def test_programs_in_containers_answer_and_leave_nothing(
    docker: FakeDocker, tmp_path: Path
) -> None:
    """In their order, from the state that is handed in; what they print is kept."""
    with node_in(docker, write(tmp_path / "a", MAIN)) as node:
        first = answers(node, [question(1, values=[1, 2])])[b"q1"]
        second = answers(node, [question(2, state=first.state)])[b"q2"]
        until(lambda: b"seen 2\n" in node.running()[0].printed)
        used = [0.0]

        def is_paid() -> bool:
            used[0] += answers(node, [question(len(used) + 10)])[b"q%d" % (len(used) + 10)][4]
            return used[0] > 0

        until(is_paid)
        (running,) = docker.containers.values()

    assert [each.channels for each in first.outputs] == [b'{"count":1}', b'{"count":2}']
    assert second.outputs[0].channels == b'{"count":3}'
    assert running.body["Image"] == IMAGE
    assert docker.containers == {}


def test_one_that_ends_is_begun_again_and_who_ends_it_is_to_blame(
    docker: FakeDocker, tmp_path: Path
) -> None:
    """As with processes; a container that somebody else has killed, too."""
    with node_in(docker, write(tmp_path / "a", MAIN)) as node:
        found = answers(node, [question(13), question(2)])
        for each in list(docker.containers.values()):
            each.end()
        again = answers(node, [question(3)])[b"q3"]

    assert "it has ended" in found[b"q13"].error
    assert found[b"q2"].outputs[0].channels == b'{"count":1}'
    assert again.outputs[0].channels == b'{"count":1}'
    assert len(docker.made) >= 3
    assert docker.containers == {}


def test_where_dockers_socket_is_reset_that_is_an_end(docker: FakeDocker) -> None:
    """It is heard at once: else the next question would wait as long as an answer may take."""
    attached, theirs = socket.socketpair()
    running = Container(Docker(docker.path, IMAGE), "of nobody", attached)
    try:
        running.send(b"what is not read")
        assert select.select([theirs], [], [], SECONDS)[0]
        theirs.close()  # which is a reset, as that was not read

        assert select.select([running.socket], [], [], SECONDS)[0]
        with pytest.raises(Misbehaved, match="it has ended"):
            list(running.frames())
    finally:
        running.end()
        until(running.is_gone)


def test_what_docker_refuses_is_nobodys_fault(docker: FakeDocker, tmp_path: Path) -> None:
    """A question waits until an image is there, as for a store."""
    docker.refuses = 404, f"No such image: {IMAGE}"
    with node_in(docker, write(tmp_path / "a", MAIN)) as node:
        assert node.ask(question(1))
        until(lambda: "could not begin" in node.running()[0].problem)
        docker.refuses = None
        assert answers(node, []) == {}
        until(lambda: [each.id for each in node.replies(0.1)] == [b"q1"])


def test_strangers_get_no_network(docker: FakeDocker, tmp_path: Path) -> None:
    """Nothing is even asked of Docker."""
    with node_in(docker, write(tmp_path / "a", MAIN, network=True)) as node:
        assert "network" in answers(node, [question(1)])[b"q1"].error
    assert docker.made == []


def test_doctor_tells_whether_the_image_is_there(docker: FakeDocker) -> None:
    """With what to do where it is not, and where there is no Docker at all."""
    docker.images = {IMAGE}
    asked = {"operators_docker": docker.path, "operators_image": IMAGE}
    there = doctor.operator_layers(changed(Settings(), **asked))
    absent = doctor.operator_layers(changed(Settings(), **asked | {"operators_image": "other:2"}))
    nowhere = doctor.operator_layers(changed(Settings(), operators_docker="/nowhere/docker.sock"))

    assert (there.ok, there.detail) == (True, f"in containers of {IMAGE}, by Docker")
    assert (absent.ok, absent.detail) == (False, "Docker: No such image: other:2")
    assert "docker pull other:2" in absent.remedy
    assert not nowhere.ok
    assert "Docker does not answer" in nowhere.detail
