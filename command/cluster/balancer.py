"""HAProxy in front of what clients reach: which takes the next request, or the next socket."""

from __future__ import annotations

import shutil
from typing import NamedTuple

from command.cluster import machines
from servioticy.errors import SetupError

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


def program() -> str:
    """Return where it is. Raises SetupError."""
    found = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise SetupError(
            "HAProxy is not installed: `apt-get install haproxy`; without root, `apt-get download "
            "haproxy`, `dpkg -x` into a folder, and its usr/sbin on your PATH"
        )
    return found


def configuration(api: Front, live: Front) -> str:
    """Return what it is told."""
    of_api = _service("api", api, "/private/health", machines.APIS)
    of_live = _service("live", live, "/health", machines.DELIVERIES)
    return "".join((_TEXT.format(check=CHECK_MS), of_api, of_live))


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
