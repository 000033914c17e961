"""The network: a switch, and a cable to each machine, whose network is a namespace of its own.

All of it belongs to the user namespace of who builds it, and is gone with its last process. Other
commands come in by that one's process id.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from command.cluster import machines
from servioticy.errors import SetupError

SWITCH = "switch"
NOWHERE = "02:00:00:00:00:00"
"""A card that nobody has: what is sent to it is lost, and nobody is told."""
SECONDS = 20.0
REMEDY = (
    "this machine lets no user make networks: look at the settings user.max_user_namespaces, "
    "kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns of "
    "`sysctl`; in a container, its seccomp profile has to allow `unshare`"
)


def alone(command: Sequence[str]) -> list[str]:
    """Return the command to run with networks and mounts of its own, root among them and the same
    user outside. Raises SetupError where this machine does not let us."""
    tools = {
        each: shutil.which(each) or shutil.which(each, path="/usr/sbin:/sbin") for each in _TOOLS
    }
    if lacking := [f"{each} ({_TOOLS[each]})" for each, found in tools.items() if found is None]:
        raise SetupError(f"this machine lacks {', '.join(lacking)}")
    own = [str(tools["unshare"]), "--user", "--map-root-user", "--net", "--mount", "--"]
    attempt = "ip link add name one type bridge && ip link add name two type veth"
    tried = subprocess.run(
        [*own, "sh", "-c", attempt], capture_output=True, text=True, check=False
    )
    if tried.returncode:
        raise SetupError(f"{REMEDY} ({tried.stderr.strip()})")
    return [*own, *command]


_TOOLS = {
    "ip": "package iproute2",
    "unshare": "package util-linux",
    "nsenter": "package util-linux",
}


def visiting(pid: int, folder: Path, machine: str | None = None) -> list[str]:
    """Return what to put before a command of whoever is outside; without a machine it is beside
    the switch."""
    before = ["nsenter", f"--target={pid}", "--user", "--mount", "--net", "--preserve-credentials"]
    return before if machine is None else [*before, *inside(folder, machine)]


def inside(folder: Path, machine: str) -> list[str]:
    """Return what to put before a command to have it run on that machine."""
    return ["nsenter", f"--net={_namespace(folder, machine)}"]


def build(folder: Path) -> None:
    """Make the switch and all machines. Raises SetupError."""
    folder.mkdir(parents=True, exist_ok=True)
    commands = [
        f"link add name {SWITCH} type bridge",
        f"addr add {machines.OURS}/{machines.BITS} dev {SWITCH}",
        f"link set {SWITCH} up",
        "link set lo up",
    ]
    for each in machines.NUMBERS:
        namespace = _namespace(folder, each)
        namespace.touch()
        _run(["unshare", f"--net={namespace}", "true"])
        commands += [
            f"link add name {machines.link(each)} type veth peer name eth0 "
            f"address {machines.hardware(each)} netns {namespace}",
            f"link set {machines.link(each)} master {SWITCH} up",
        ]
    change(commands)
    for each in machines.NUMBERS:
        own = f"addr add {machines.address(each)}/{machines.BITS} dev eth0"
        change(["link set lo up", own, "link set eth0 up"], inside(folder, each))


def cut(machine: str) -> list[str]:
    """Return what of `ip` takes its cable away."""
    return [f"link set {machines.link(machine)} down"]


def healed(machine: str) -> list[str]:
    """Return what of `ip` puts it back."""
    return [f"link set {machines.link(machine)} up"]


def deaf(to: str) -> list[str]:
    """Return what of `ip` has nothing arrive at another one, on the machine where it is run."""
    return [f"neigh replace {machines.address(to)} lladdr {NOWHERE} nud permanent dev eth0"]


def hearing(others: Sequence[str]) -> list[str]:
    """Return what of `ip` makes up for it."""
    return [
        f"neigh replace {machines.address(each)} lladdr {machines.hardware(each)} "
        "nud reachable dev eth0"
        for each in others
    ]


def change(commands: Sequence[str], before: Sequence[str] = ()) -> None:
    """Have `ip` do these, one after the other. Raises SetupError."""
    _run([*before, "ip", "-batch", "-"], "\n".join([*commands, ""]))


def _run(command: Sequence[str], text: str = "") -> None:
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode:
        raise SetupError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")


def _namespace(folder: Path, machine: str) -> Path:
    return folder / machine
