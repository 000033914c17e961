"""Hostile operators: what a program cannot see, reach, take or become."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from operator_folders import (
    PROGRAM,
    Folders,
    answers,
    fetched,
    node_of,
    question,
    require_layers,
    until,
    write,
)

from operators import cgroups
from operators.attending import Bounds
from operators.guest.launch import FIRST_USER
from operators.instance import Place
from operators.node import Node
from servioticy.ports.programs import Program

HOSTILE = r"""
import ctypes, errno, json, mmap, os, signal, socket, struct, subprocess, sys, threading, time
from servioticy_operator import serve

C = ctypes.CDLL(None, use_errno=True)
SECRET, OURS = open("secret").read().split("\n")[:2]
SYSTEM = {"x86_64": 0, "aarch64": 1}[os.uname().machine]

def call(*numbers_and_arguments):
    numbers, *arguments = numbers_and_arguments
    C.syscall.restype = ctypes.c_long
    passed = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments]
    if C.syscall(numbers[SYSTEM], *passed) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return "possible"

def tries(attempt):
    try:
        return attempt() or "possible"
    except BaseException as error:
        number = getattr(error, "errno", None)
        return type(error).__name__ + (f" {errno.errorcode[number]}" if number else "")

def anonymous(size, flags):
    C.mmap.restype = ctypes.c_void_p
    C.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
    if C.mmap(None, size, 3, flags, -1, 0) == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")

def fill():
    written = 0
    try:
        for number in range(100):
            with open(f"/tmp/{number}", "wb") as file:
                for _ in range(64):
                    written += file.write(bytes(1 << 20))
                    file.flush()
    except OSError:
        pass
    for number in os.listdir("/tmp"):
        os.unlink("/tmp/" + number)
    return written

def threads():
    begun = 0
    stop = threading.Event()
    try:
        for _ in range(1000):
            threading.Thread(target=stop.wait, daemon=True).start()
            begun += 1
    except RuntimeError:
        pass
    stop.set()
    return begun

def everything():
    found, size = [], 0
    for place, folders, names in os.walk("/"):
        if place.startswith(("/proc", "/usr", "/lib", "/root")):
            folders.clear()
        found += [os.path.join(place, each) for each in names]
    return [each for each in found if not each.startswith(("/operator/", "/dev/"))][:50]

def mount():
    return call((165, 40), b"a", b"/tmp", b"tmpfs", 0, 0)

def shown():
    return os.path.isdir("/proc/1")

PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
ATTEMPTS = {
    "the secret": lambda: open(SECRET).read(),
    "the platform": lambda: os.listdir(OURS),
    "passwords": lambda: open("/etc/shadow").read(),
    "writing to its folder": lambda: open("/operator/new", "w"),
    "writing to the system": lambda: open("/usr/new", "w"),
    "writing to the root": lambda: open("/new", "w"),
    "changing its folder": lambda: os.chmod("/operator/main.py", 0o777),
    "a device": lambda: os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0)),
    "a socket": lambda: socket.socket(),
    "a socket of IPv6": lambda: socket.socket(socket.AF_INET6),
    "a socket of Unix": lambda: socket.socket(socket.AF_UNIX),
    "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
    "raw packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    "addresses": lambda: __import__("fcntl").ioctl(3, 0x8912, bytes(16)),
    "a fork": lambda: os.fork(),
    "another program": lambda: subprocess.run(["/bin/sh", "-c", "true"]),
    "shared memory": lambda: anonymous(1 << 30, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS),
    "memory that grows down": lambda: anonymous(1 << 30, 0x100 | PRIVATE),
    "private memory": lambda: anonymous(1 << 30, PRIVATE),
    "memory as a file": lambda: os.memfd_create("a"),
    "System V": lambda: call((29, 194), 0, 1 << 20, 0o1600),
    "killing": lambda: os.kill(-1, signal.SIGKILL),
    "another user": lambda: os.setuid(0),
    "a namespace": lambda: call((272, 97), 0x10000000),
    "a mount": mount,
    "tracing": lambda: call((101, 117), 16, 1, 0, 0),
    "keys": lambda: call((248, 217), b"user", b"a", b"b", 1, 0xFFFFFFFD),
    "BPF": lambda: call((321, 280), 0, 0, 0),
    "io_uring": lambda: call((425, 425), 8, bytes(256)),
    "outliving": lambda: call((157, 167), 1, 0, 0, 0, 0),
    "more memory": lambda: __import__("resource").setrlimit(2, (1 << 40, 1 << 40)),
    "a lower niceness": lambda: os.nice(-20),
}

def hostile(event, state):
    found = {name: tries(attempt) for name, attempt in ATTEMPTS.items()}
    found["filled"] = fill()
    found["threads"] = threads()
    found["user"] = os.getuid()
    processes = [each for each in os.listdir("/proc") if each.isdigit()]
    found["processes"] = processes if shown() else ["1"]
    found["environment"] = sorted(os.environ)
    found["files"] = everything()
    found["descriptors"] = sorted(os.listdir("/proc/self/fd")) if shown() else []
    return {"found": found}

serve(hostile)
"""
MEMORY = 96


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What a hostile program has come to, enclosed as strangers' are."""
    require_layers()
    tmp_path = tmp_path_factory.mktemp("hostile")
    tmp_path.chmod(0o777)
    secret = tmp_path / "secret"
    secret.write_text("of the platform")
    secret.chmod(0o666)
    limits = {"memory": f"{MEMORY}MiB", "processes": 8, "answer": "60s"}
    folder = write(tmp_path / "a", HOSTILE, limits=limits)
    (folder / "secret").write_text(f"{secret}\n{Path(__file__).parent}\n")
    os.environ["A_SECRET_OF_OURS"] = "x"
    try:
        with node_of({PROGRAM: folder}, tmp_path, strangers=True) as node:
            reply = answers(node, [question(1)])[b"q1"]
    finally:
        del os.environ["A_SECRET_OF_OURS"]
    assert reply.error == ""
    yield json.loads(reply.outputs[0].channels)["found"]


def test_no_attempt_of_a_hostile_program_succeeds(found: dict[str, Any]) -> None:
    """Each by its own call, and each refused by an error, not by the end of the process."""
    attempts = {name: what for name, what in found.items() if isinstance(what, str)}

    assert len(attempts) == 32
    assert {name: what for name, what in attempts.items() if "Error" not in what} == {}


@pytest.mark.parametrize("name", ["the secret", "the platform", "passwords"])
def test_files_of_the_platform_are_not_there(found: dict[str, Any], name: str) -> None:
    """Not only unreadable: whoever may read them cannot name them."""
    assert found[name] == "FileNotFoundError ENOENT"


def test_what_it_sees_is_its_folder_and_what_it_is_run_by(found: dict[str, Any]) -> None:
    """Nothing of the machine's but the names of its time zone and libraries."""
    assert set(found["files"]) <= {"/etc/ld.so.cache", "/etc/localtime"}
    assert found["processes"] == ["1"]
    assert "A_SECRET_OF_OURS" not in found["environment"]
    assert set(found["descriptors"]) <= {"0", "1", "2", "3", "4"}


def test_what_it_may_take_is_bounded(found: dict[str, Any]) -> None:
    """A few MiB of files, in memory; its threads; its memory by each of the ways to it."""
    assert found["filled"] <= 16 * 1024 * 1024
    assert found["threads"] < 8
    assert found["private memory"] == "OSError ENOMEM"
    assert found["shared memory"] == found["memory that grows down"] == "PermissionError EPERM"


def test_it_is_a_user_of_its_own(found: dict[str, Any], tmp_path: Path) -> None:
    """No two programs that run are the same one, of one tenant neither."""
    main = """
import os
from servioticy_operator import serve
serve(lambda event, state: {"user": os.getuid()})
"""
    folder = write(tmp_path / "a", main)
    programs = [Program(1, "a", 1), Program(1, "a", 2), Program(2, "a", 1)]
    with node_of(dict.fromkeys(programs, folder), tmp_path, Bounds(6), strangers=True) as node:
        replies = answers(node, [question(each, program) for each, program in enumerate(programs)])
    users = {json.loads(each.outputs[0].channels)["user"] for each in replies.values()}

    if os.geteuid() == 0:
        assert len(users | {found["user"]}) == 4
        assert min(users) > FIRST_USER or users == {65533}
    else:
        assert users == {os.getuid()}


def test_nothing_of_it_is_left_in_the_folders_of_the_platform(tmp_path: Path) -> None:
    """Its file system is its own: outside of it nothing is mounted, nothing written."""
    require_layers()
    main = """
from servioticy_operator import serve
open("/tmp/left", "w").write("x" * 1000)
serve(lambda event, state: event.channels)
"""
    folder = write(tmp_path / "a", main)
    before = sorted(each.name for each in folder.iterdir())
    with node_of({PROGRAM: folder}, tmp_path, strangers=True) as node:
        assert answers(node, [question(1)])[b"q1"].error == ""
        pid = node.running()[0].pid
        mounts = Path("/proc/self/mounts").read_text()
        assert list((tmp_path / "root").iterdir()) == []
    until(lambda: not Path(f"/proc/{pid}").exists())

    assert str(tmp_path) not in mounts
    assert sorted(each.name for each in folder.iterdir()) == before


def test_what_cannot_be_enclosed_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers' programs wait until somebody has looked; nobody blames them."""
    boot = """
import sys,types
for name,folder in zip(('operators','sandbox','sandbox.guest'),sys.argv[2:]):
 sys.modules[name]=module=types.ModuleType(name); module.__path__=[folder]
import operators.guest.launch as launch
from sandbox.guest import seccomp
def refuse(calls): raise seccomp.SeccompRefused("it is off")
seccomp.install = refuse
launch.main(sys.argv[1])
"""
    monkeypatch.setattr("operators.instance._BOOT", boot)
    main = "from servioticy_operator import serve\nserve(lambda event, state: event.channels)"
    folder = write(tmp_path / "a", main)
    with node_of({PROGRAM: folder}, tmp_path, strangers=True) as node:
        assert node.ask(question(1))
        until(lambda: node.running()[0].problem != "")

        assert "cannot enclose" in node.running()[0].problem
        assert node.running()[0].state == "resting"
        assert node.replies(0.0) == []
    with node_of({PROGRAM: folder}, tmp_path, strangers=False) as node:
        assert answers(node, [question(1)])[b"q1"].error == ""


def test_a_program_of_our_own_may_have_the_network_and_a_strangers_may_not(
    tmp_path: Path,
) -> None:
    """Where all tenants are one's own, by its manifest; else it is not begun at all."""
    main = """
import socket
from servioticy_operator import serve
def reach(event, state):
    with socket.create_connection(("127.0.0.1", int(event.value("value")))) as other:
        return {"heard": other.recv(5).decode()}
serve(reach)
"""
    folder = write(tmp_path / "a", main, network=True)
    without = write(tmp_path / "b", main)
    other = Program(2, "tried", 1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with node_of({PROGRAM: folder, other: without}, tmp_path) as node:
            assert node.ask(question(1, values=[port]))
            met, _ = server.accept()
            met.sendall(b"hello")
            met.close()
            (reached,) = fetched(node, 1).values()
            (unreached,) = answers(node, [question(2, other, values=[port])]).values()
        with node_of({PROGRAM: folder}, tmp_path, strangers=True) as node:
            (refused,) = answers(node, [question(3, values=[port])]).values()

    assert (reached.error, reached.outputs[0].channels) == ("", b'{"heard":"hello"}')
    assert unreached.error
    assert "network" in refused.error


def test_a_program_is_in_a_group_of_its_own_where_there_are_groups(tmp_path: Path) -> None:
    """And the group goes with it."""
    try:
        place = cgroups.found()
    except cgroups.NoGroups as error:
        pytest.skip(f"no control groups on this machine: {error}")
    main = "from servioticy_operator import serve\nserve(lambda event, state: event.channels)"
    root = tmp_path / "root"
    root.mkdir()
    folders = Folders({PROGRAM: write(tmp_path / "a", main)})
    node = Node(folders, Place(root, strangers=False, groups=cgroups.Groups(place)))
    try:
        assert answers(node, [question(1)])[b"q1"].error == ""
        pid = node.running()[0].pid
        group = Path(f"/proc/{pid}/cgroup").read_text()
        (ours,) = (each for each in place.iterdir() if each.name.startswith(f"{os.getpid()}-"))
        assert ours.name in group
        assert int((ours / "memory.max").read_text()) > 0
    finally:
        node.close()
    until(lambda: not ours.exists())
