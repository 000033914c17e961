"""Becomes a tenant's program: leaves the machine behind layer by layer, and executes it.

It is executed itself, alone in its process and with one thread. Its standard output is that of the
program. It is told of two descriptors: that of the program's end of its socket, which becomes
number 3, and that of a pipe on which lines of JSON tell who it is ({"pid"}), which layers it could
have ({"layers"}: "" or why one is missing), and what has failed ({"failed"}); it is closed as the
program begins.

The first process stays and waits, as who is in the new namespace of processes cannot be reached
from there by name. It ends with who has started it, and the program with it.
"""

from __future__ import annotations

import encodings.ascii  # noqa: F401  where it is wanted there is no file to read it from
import fcntl
import json
import os
import resource
import select
import sys
from collections.abc import Mapping
from typing import Any

from operators.guest import calls, root
from sandbox.guest import confinement, limits, seccomp
from sandbox.yielding import NICE, yield_to_others

SOCKET, STATUS = 3, 4
NOT_PROTECTED = "not protected: "
REQUIRED = ("user", "files", "processes", "network", "ipc", "privileges", "seccomp")
"""Without these a program of strangers does not run."""

FIRST_USER = 0x70000000
"""Of those whom programs become: the process's number is added, so no two that run are one."""

DESCRIPTORS = 128
STACK_BYTES = 4 * 1024 * 1024

_NEW = {"files": 0x00020000, "processes": 0x20000000, "network": 0x40000000, "ipc": 0x0C000000}

Layers = dict[str, str]


def main(specification: str) -> None:
    """Become the program of this JSON: `folder`, `base`, `shown`, `command`, `environment`,
    `memory`, `processes`, `temporary`, `strangers`, `network`, `descriptors`, and `group`, where
    who writes joins a cgroup, or null."""
    asked = json.loads(specification)
    if asked["group"] is not None:
        os.write(asked["group"], b"0")
        os.close(asked["group"])
    away = [fcntl.fcntl(each, fcntl.F_DUPFD, STATUS + 1) for each in asked["descriptors"]]
    for each, number in zip(away, (SOCKET, STATUS), strict=True):
        os.dup2(each, number)
        os.close(each)
    for each in set(asked["descriptors"]) - {SOCKET, STATUS}:
        os.close(each)
    owner = os.getppid()
    limits.tie(owner)
    layers = _unshare(asked["network"])
    user = FIRST_USER + os.getpid()
    watched, life = os.pipe()
    pid = os.fork()
    if pid:
        os.close(watched)
        os.close(SOCKET)
        _tell(pid=pid)
        os.close(STATUS)
        os.dup2(0, 1)
        os.dup2(0, 2)
        _, status = os.waitpid(pid, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    os.close(life)
    try:
        _enclose(asked, user, layers, watched)
        first, *others = asked["command"]
        if layers["files"] and first.startswith(root.HOME + "/"):
            first = asked["folder"] + first.removeprefix(root.HOME)
        os.execve(first, [first, *others], asked["environment"])  # noqa: S606  no shell
    except Exception as error:  # noqa: BLE001  whatever it is, it is told
        _tell(failed=f"{type(error).__name__}: {error}")
    os._exit(125)


def _unshare(network: bool) -> Layers:
    if network:
        return _left({name: flags for name, flags in _NEW.items() if name != "network"}) | {
            "network": "it has asked for it"
        }
    return _left(_NEW)


def _left(new: Mapping[str, int]) -> Layers:
    user, group = os.geteuid(), os.getegid()
    if user != 0:
        reason = confinement.call("unshare", confinement.NEW_USER)
        reason = reason or confinement.stay_who_we_are(user, group)
        if reason:
            return dict.fromkeys(new, reason)
    return {name: confinement.call("unshare", flags) for name, flags in new.items()}


def _enclose(asked: dict[str, Any], user: int, layers: Layers, watched: int) -> None:
    os.setsid()
    yield_to_others(NICE)  # they come behind all of ours; while the machine's /proc is there
    known = confinement.outside(user) is not None
    if not known and not layers["processes"]:
        user, known = (
            confinement.OTHER_USER,
            confinement.outside(confinement.OTHER_USER) is not None,
        )
    if not layers["files"]:
        try:
            root.enter(asked["base"], asked["folder"], asked["shown"], asked["temporary"])
            os.chdir(root.HOME)
        except OSError as error:
            layers["files"] = str(error)
    if layers["files"]:
        os.chdir(asked["folder"])
    _limit(asked)
    layers["user"] = (
        _become(user, layers) if known or os.geteuid() else "there is nobody to become"
    )
    layers["privileges"] = confinement.drop_capabilities() or confinement.leave_new_privileges()
    limits.tie(os.getppid())
    if select.select([watched], [], [], 0)[0]:
        os._exit(0)  # who started us has ended before we were tied
    os.close(watched)
    layers["limits"] = layers["seccomp"] = ""
    try:
        seccomp.install(calls.WITH_NETWORK if asked["network"] else calls.PROGRAM)
        calls.prove(SOCKET, asked["network"])
    except seccomp.SeccompRefused as error:
        layers["seccomp"] = str(error)
    _tell(layers=layers)
    lacking = "; ".join(f"{name}: {layers[name]}" for name in REQUIRED if layers[name])
    if asked["strangers"] and lacking:
        _tell(failed=NOT_PROTECTED + lacking)
        os._exit(125)
    os.set_inheritable(SOCKET, True)
    os.set_inheritable(STATUS, False)


def _limit(asked: dict[str, Any]) -> None:
    for limit, value in (
        (resource.RLIMIT_DATA, asked["memory"]),
        (resource.RLIMIT_STACK, STACK_BYTES),
        (resource.RLIMIT_NPROC, asked["processes"]),
        (resource.RLIMIT_NOFILE, DESCRIPTORS),
        (resource.RLIMIT_FSIZE, asked["temporary"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, 128),
    ):
        resource.setrlimit(limit, (value, value))


def _become(user: int, layers: Layers) -> str:
    """Become a user that nobody else is. Who is not root, in a namespace of users, is that alone.

    Not where the file system is the machine's: what it is run by may be readable to us only.
    """
    if os.geteuid() != 0:
        return layers["processes"]
    if layers["files"]:
        return "not without a file system of its own"
    try:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError as error:
        return f"still root: {error}"
    return ""


def _tell(**said: object) -> None:
    os.write(STATUS, json.dumps(said)[:4000].encode() + b"\n")


if __name__ == "__main__":
    main(sys.argv[1])
