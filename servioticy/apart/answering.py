"""The other side of `asking`: a process of lower priority that answers until nobody asks.

It is in a session of its own, which yields as a whole: Linux may share the processor out by
sessions first, and in that of the process that asks it would take from that one alone.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

from sandbox.yielding import NICE, yield_to_others


def serve(answer: Callable[[bytes], bytes], nice: int = NICE) -> None:
    """Answer what comes over the descriptor that our command line ends with.

    Ends with the process that asks, whose end of the socket then closes: at once, also in the
    middle of an answer. Nobody else ends it, as it is in no group of that one's.
    """
    yield_to_others(nice)
    connection = Connection(int(sys.argv[-1]))
    watch = threading.Thread(target=_end_with, args=(connection.fileno(),), daemon=True)
    watch.start()
    while True:
        try:
            connection.send_bytes(answer(connection.recv_bytes()))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _end_with(descriptor: int) -> None:
    """End this process once the other end of the socket is closed."""
    hung_up = select.poll()
    hung_up.register(descriptor, 0)
    hung_up.poll()
    os._exit(0)
