"""What connections leave behind that goes only where all that lives is looked through."""

from __future__ import annotations

import contextlib
import gc
import socket
import time
from collections.abc import Callable

OF_ASYNCIO = 9
"""Objects: a transport of asyncio holds itself, by the method that it reads with."""
CONNECTIONS = 40
OF_TESTS = 60
"""What the test itself leaves meanwhile."""
SETTLES_SECONDS = 0.2
ANSWER_SECONDS = 5.0


def ask(port: int, sent: bytes, *, waits: bool) -> None:
    """Connect and say something; wait for all that is answered, or go at once."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(ANSWER_SECONDS)
        client.sendall(sent)
        with contextlib.suppress(ConnectionResetError):
            while waits and client.recv(65_536):
                pass


def left_of(connect: Callable[[], None]) -> float:
    """Return the objects that each of some connections leaves, beyond asyncio's own and ours."""
    connect()
    time.sleep(SETTLES_SECONDS)
    gc.collect()
    gc.disable()
    try:
        for _ in range(CONNECTIONS):
            connect()
        time.sleep(SETTLES_SECONDS)
        return max(0, gc.collect() - OF_TESTS) / CONNECTIONS - OF_ASYNCIO
    finally:
        gc.enable()
