"""TCP ports of this machine: which are free, and one that a part keeps for good."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from servioticy.errors import SetupError

LOOPBACK = "127.0.0.1"
NOT_EPHEMERAL = (20_000, 32_000)


def is_free(port: int, host: str = LOOPBACK) -> bool:
    """Tell whether a server could listen there now."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as attempt:
        # As servers do: connections of a server just gone must not make its port look taken.
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((host, port))
        except OSError:
            return False
    return True


def answers(host: str, port: int, seconds: float = 1.0) -> bool:
    """Tell whether something accepts a connection there."""
    try:
        socket.create_connection((host, port), timeout=seconds).close()
    except OSError:
        return False
    return True


def free() -> int:
    """Return a free port that the system does not hand to clients.

    A client that tries again and again to reach a server that is down may otherwise be
    given the server's own port, connect to itself, and keep the server from coming back.
    """
    tried = (random.randrange(*NOT_EPHEMERAL) for _ in range(1000))  # noqa: S311
    port = next((port for port in tried if is_free(port)), None)
    if port is None:
        raise SetupError(f"no free TCP port between {NOT_EPHEMERAL[0]} and {NOT_EPHEMERAL[1]}")
    return port


def kept(file: Path) -> int:
    """Return the port written in `file`.

    If none is or it is taken, a free one is, from then on.
    """
    try:
        port = int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        port = 0
    if not 0 < port < 65536 or not is_free(port):
        port = free()
        file.write_text(str(port), encoding="ascii")
    return port
