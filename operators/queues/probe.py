"""Whether a store will do for queues: it answers, is new enough, and lets us make users."""

from __future__ import annotations

import re
import secrets

from operators.queues.link import prefix
from operators.queues.resp import Address, Connection, Refused, StoreLost
from servioticy.errors import Unavailable

LEAST_VERSION = 7
"""Of both kinds: from there on a user may be allowed to append and not to read."""


def probed(place: Address) -> str:
    """Try what queues need; say what the store is. Raises Unavailable with what is missing."""
    name = f"{prefix(place)}probe-{secrets.token_hex(8)}"
    try:
        store = Connection(place)
    except (StoreLost, Refused) as error:
        raise Unavailable(str(error)) from error
    try:
        told = store.call("INFO", "server")
        found = _version(told if isinstance(told, bytes) else b"")
        store.calls(
            [
                ("SET", f"{name}:here", 1, "PX", 1000),
                ("ACL", "SETUSER", name, f"%RW~{name}:asked", f"%W~{name}:answered", "+blpop"),
                ("ACL", "DELUSER", name),
                ("DEL", f"{name}:here"),
            ]
        )
    except (StoreLost, Refused) as error:
        raise Unavailable(str(error)) from error
    finally:
        store.close()
    return found


def _version(told: bytes) -> str:
    """Return name and version. Raises Refused where it is too old."""
    lines = dict(
        re.findall(r"^(\w+_version):(\d{1,6}[.\d]{0,20})", told.decode(errors="replace"), re.M)
    )
    kind = "valkey" if "valkey_version" in lines else "redis"
    version = lines.get(f"{kind}_version", "0")
    if int(version.split(".")[0]) < LEAST_VERSION:
        raise Refused(f"{kind} {version}: has to be {LEAST_VERSION} or newer")
    return f"{kind} {version}"
