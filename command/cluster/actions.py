"""`servioticy cluster` and its words: start it, look at it, cut and heal it, run in it."""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from command import commands
from command.cluster import machines, network, slow_cables
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.folder import read_run
from servioticy.errors import SetupError
from servioticy.settings import Settings, changed, to_environment


def add(group: Any, command: Any) -> None:
    """Add `servioticy cluster`."""
    about = command(
        group,
        "cluster",
        "run the platform on several machines, which are made here, until Ctrl-C",
        _start,
        "Networks of their own, without root: a driver, a master and two workers of Spark, a "
        "store, two of the API and of delivery behind a balancer (HAProxy, if it is installed), "
        "and a client. They can be cut off. "
        "Its data is in the folder `cluster` of the data folder.",
    )
    actions = about.add_subparsers(title="actions", metavar="ACTION")
    text = "tell which machines there are, what runs on each, and which are cut off"
    command(actions, "status", text, _status)
    cut = command(
        actions,
        "cut",
        "cut off a machine, or one from another",
        _cut,
        "Nobody is told: what is sent is lost until `servioticy cluster heal`.",
    )
    _add_machine(cut, "machine")
    _add_machine(cut, "other", nargs="?", text="only from this one")
    slow = command(
        actions,
        "slow",
        "let what a machine sends and gets come later",
        _slow,
    )
    _add_machine(slow, "machine")
    slow.add_argument("milliseconds", metavar="MS", type=_milliseconds, help="each way; 0: none")
    heal = command(actions, "heal", "make up for all cuts, or those of a machine", _heal)
    _add_machine(heal, "machine", nargs="?")
    command(
        actions,
        "promote",
        "fence the primary of Postgres, and let the standby take its place",
        _promote,
        "What was acknowledged to clients is there: it waited for the standby. What the pipeline "
        "has stored since is made again from the log.",
    )
    run = command(
        actions,
        "run",
        "run a command on the client's machine, or on another one",
        _run,
        "A `servioticy` command asks the platform behind the balancer.",
    )
    run.add_argument("--on", choices=machines.NUMBERS, default="client", help="where (client)")
    run.add_argument("rest", metavar="COMMAND", nargs=argparse.REMAINDER)


def _add_machine(command: Any, name: str, text: str = "which", **more: Any) -> None:
    command.add_argument(name, metavar=name.upper(), choices=machines.NUMBERS, help=text, **more)


def _start(_parsed: argparse.Namespace, settings: Settings) -> int:
    """Become it, in networks of its own."""
    commands.require("local")
    outside = [_listening(each) for each in (settings.api.port, settings.delivery.port)]
    program = [sys.executable, "-P", "-m", "command.cluster", *map(str, outside)]
    own = changed(settings, data=str(_folder(settings)))
    commands.become(network.alone(program), to_environment(own))
    return 0


def _listening(port: int) -> int:
    """Return a socket of this machine's own network, for who has others. Raises SetupError."""
    if not ports.is_free(port):
        raise SetupError(f"port {port} is taken: set api_port and live_port to others")
    listener = socket.create_server((ports.LOOPBACK, port), backlog=1024)
    listener.set_inheritable(True)
    return listener.detach()


def _status(_parsed: argparse.Namespace, settings: Settings) -> int:
    """Print a line for each machine."""
    facts = _facts(settings)
    shown = _inside(settings, ["ip", "-json", "link", "show"])
    links = {each["ifname"]: "UP" in each["flags"] for each in json.loads(shown)}
    slow = slow_cables.read(_folder(settings))
    store = {each: facts["pids"].get(each) for each in ("postgres", "kafka")}
    for each in machines.NUMBERS:
        pids = store if each == "store" else {each: facts["pids"].get(each)}
        programs = ", ".join(f"{name} ({pid})" for name, pid in pids.items() if pid)
        state = "up" if links.get(machines.link(each)) else "cut off"
        deaf = [other for other in machines.NUMBERS if other in _deaf(settings, each)]
        state += f", slow by {slow[each]} ms" if each in slow else ""
        state += f", hears nothing of {', '.join(deaf)}" if deaf else ""
        line = f"{each:<11} {machines.address(each):<12} {programs or '-':<32} {state}"
        sys.stdout.write(f"{line}\n")
    return 0


def _cut(parsed: argparse.Namespace, settings: Settings) -> int:
    """Cut off one, or two from each other."""
    if parsed.other is None:
        _change(settings, network.cut(parsed.machine))
    else:
        for one, other in ((parsed.machine, parsed.other), (parsed.other, parsed.machine)):
            _change(settings, network.deaf(other), one)
    return 0


def _slow(parsed: argparse.Namespace, settings: Settings) -> int:
    """Have the supervisor of the cluster see to it."""
    _facts(settings)
    folder = _folder(settings)
    slow_cables.write(folder, slow_cables.read(folder) | {parsed.machine: parsed.milliseconds})
    return 0


def _milliseconds(text: str) -> int:
    if not text.isdecimal() or not int(text[:10]) <= slow_cables.MOST_MILLISECONDS:
        raise argparse.ArgumentTypeError("it has to be a whole number of milliseconds, to 10000")
    return int(text)


def _heal(parsed: argparse.Namespace, settings: Settings) -> int:
    """Make up for it."""
    _facts(settings)
    folder = _folder(settings)
    kept = {} if parsed.machine is None else slow_cables.read(folder)
    slow_cables.write(folder, kept | ({parsed.machine: 0} if parsed.machine else {}))
    for each in machines.NUMBERS:
        if parsed.machine in (None, each):
            _change(settings, network.healed(each))
        if deaf := _deaf(settings, each):
            of = [other for other in deaf if parsed.machine in (None, each, other)]
            _change(settings, network.hearing(of), each)
    return 0


def _promote(_parsed: argparse.Namespace, settings: Settings) -> int:
    """Do it from the client's machine, which reaches both."""
    facts = _facts(settings)
    command = network.visiting(facts["pid"], _networks(settings), "client")
    program = [sys.executable, "-P", "-m", "command.cluster.promoting"]
    commands.become(
        ["/usr/bin/env", *command, *program], {"SERVIOTICY_DATA": str(_folder(settings))}
    )
    return 0


def _run(parsed: argparse.Namespace, settings: Settings) -> int:
    """Become a command on one of them."""
    facts = _facts(settings)
    words = parsed.rest[1:] if parsed.rest[:1] == ["--"] else parsed.rest
    if not words:
        raise SetupError("which command? for instance: servioticy cluster run servioticy doctor")
    told = {
        "SERVIOTICY_DATA": str(_folder(settings)),
        "SERVIOTICY_URL": facts["api_url"],
        "SERVIOTICY_LIVE_URL": facts["live_url"],
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    command = network.visiting(facts["pid"], _networks(settings), parsed.on)
    commands.become(["/usr/bin/env", *command, *words], told)
    return 0


def _deaf(settings: Settings, machine: str) -> list[str]:
    """Return of whom it hears nothing, by a cut of two."""
    shown = json.loads(_inside(settings, ["ip", "-json", "neigh", "show"], machine) or "[]")
    lost = {each["dst"] for each in shown if each.get("lladdr") == network.NOWHERE}
    return [each for each in machines.NUMBERS if machines.address(each) in lost]


def _change(settings: Settings, words: list[str], machine: str | None = None) -> None:
    facts = _facts(settings)
    network.change(words, network.visiting(facts["pid"], _networks(settings), machine))


def _inside(settings: Settings, words: list[str], machine: str | None = None) -> str:
    before = network.visiting(_facts(settings)["pid"], _networks(settings), machine)
    return subprocess.run([*before, *words], capture_output=True, text=True, check=True).stdout


def _facts(settings: Settings) -> dict[str, Any]:
    facts = read_run(_folder(settings))
    if facts is None:
        raise SetupError(f"no cluster runs on {_folder(settings)}: servioticy cluster")
    return facts


def _folder(settings: Settings) -> Path:
    return settings.data_path / "cluster"


def _networks(settings: Settings) -> Path:
    return _folder(settings) / "networks"
