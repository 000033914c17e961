"""The other side of `asking`: a process of lower priority that answers until nobody asks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection

NICE = 5
"""Whoever waits for the process that asks comes first."""


def serve(answer: Callable[[bytes], bytes], nice: int = NICE) -> None:
    """Answer what comes over the descriptor that our command line ends with.

    Ends with the process that asks, whose end of the socket then closes.
    """
    os.nice(nice)
    connection = Connection(int(sys.argv[-1]))
    while True:
        try:
            connection.send_bytes(answer(connection.recv_bytes()))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return
