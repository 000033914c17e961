"""HAProxy in front of what clients reach: which takes the next request, or the next socket.

Where none is installed a balancer of our own is there, which hands connections on.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from command.cluster import machines
from servioticy.embedded.folder import write_private

CHECK_MS = 500


class Front(NamedTuple):
    """Where clients come: a port, and a socket of it that was opened outside of all networks."""

    port: int
    outside: int


_TEXT = """\
global
    maxconn 2000
defaults
    mode http
    balance roundrobin
    option redispatch
    retries 2
    timeout connect 1s
    timeout client 65s
    timeout server 65s
    timeout tunnel 1h
    timeout check 1s
    default-server check inter {check} fall 2 rise 1 on-marked-down shutdown-sessions
"""

_SERVICE = """\
listen {name}
    bind {host}:{port}
    bind fd@{outside}
    option httpchk GET {health}
{servers}
"""


API, LIVE = ("api", "/private/health", machines.APIS), ("live", "/health", machines.DELIVERIES)


def haproxy() -> str | None:
    """Return where HAProxy is; None: it is not installed."""
    return shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")


def command(folder: Path, api: Front, live: Front) -> list[str]:
    """Return what starts a balancer; what it is told is written into the folder."""
    found = haproxy()
    if found is not None:
        file = folder / "haproxy.cfg"
        write_private(file, configuration(api, live))
        return [found, "-db", "-f", str(file)]
    file = folder / "balancer.json"
    write_private(file, json.dumps([_described(api, *API), _described(live, *LIVE)]))
    return [sys.executable, "-P", "-m", "command.cluster.forwarding", str(file)]


def configuration(api: Front, live: Front) -> str:
    """Return what HAProxy is told."""
    of_api, of_live = (_service(one[0], at, *one[1:]) for one, at in ((API, api), (LIVE, live)))
    return "".join((_TEXT.format(check=CHECK_MS), of_api, of_live))


def _described(front: Front, name: str, health: str, of: tuple[str, ...]) -> dict[str, object]:
    return {
        "name": name,
        "host": machines.address("balancer"),
        "port": front.port,
        "outside": front.outside,
        "health": health,
        "servers": [(machines.address(each), front.port) for each in of],
    }


def _service(name: str, front: Front, health: str, of: tuple[str, ...]) -> str:
    servers = [f"    server {each} {machines.address(each)}:{front.port}" for each in of]
    return _SERVICE.format(
        name=name,
        host=machines.address("balancer"),
        port=front.port,
        outside=front.outside,
        health=health,
        servers="\n".join(servers),
    )
