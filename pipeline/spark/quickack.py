"""Acknowledge Spark's bundles at once, on the connection between its JVM and this worker.

The JVM writes with Nagle's algorithm: a small bundle waits until the one before it is
acknowledged, which Linux may delay by up to 40 ms. The JVM's end cannot be reached from here;
`TCP_QUICKACK` on ours can, and has to be set again after each read.
"""

from __future__ import annotations

import contextlib
import os
import socket
from functools import cache
from pathlib import Path
from stat import S_ISSOCK

_QUICKACK = getattr(socket, "TCP_QUICKACK", None)
"""Linux has it."""


@cache
def connections() -> tuple[socket.socket, ...]:
    """The connections to Spark's JVM: those that this process has when this is first asked,
    which has to be before it opens any other. It keeps them, as the process does."""
    found = []
    for path in Path("/proc/self/fd").iterdir() if _QUICKACK is not None else ():
        with contextlib.suppress(OSError):
            if S_ISSOCK(path.stat().st_mode):
                each = socket.socket(fileno=os.dup(int(path.name)))
                if _is_loopback(each):
                    found.append(each)
                else:
                    each.close()
    return tuple(found)


def acknowledge() -> None:
    """Send the acknowledgement that is due, and do not delay the next."""
    for each in connections():
        with contextlib.suppress(OSError):
            each.setsockopt(socket.IPPROTO_TCP, _QUICKACK or 0, 1)


def _is_loopback(connection: socket.socket) -> bool:
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    if connection.type != socket.SOCK_STREAM:
        return False
    with contextlib.suppress(OSError):
        return str(connection.getpeername()[0]).startswith(("127.", "::1"))
    return False
