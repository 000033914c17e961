"""`python -m delivery.evaluating.other_process_main FD`: computes what delivery asks for.

It ends with the process that asks, whose end of the socket then closes.
"""

from __future__ import annotations

import os
import pickle
import sys
from multiprocessing.connection import Connection

NICE = 5
"""Whoever waits for the loop comes first."""


def main() -> None:
    """Answer until nobody asks any more."""
    os.nice(NICE)
    connection = Connection(int(sys.argv[1]))
    while True:
        try:
            connection.send_bytes(answer(connection.recv_bytes()))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def answer(request: bytes) -> bytes:
    """Return what a call returns, or why it does not."""
    call = pickle.loads(request)  # noqa: S301  delivery made it
    try:
        found = call()
        return pickle.dumps(found, pickle.HIGHEST_PROTOCOL)
    except ValueError as error:
        return pickle.dumps(error, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # noqa: BLE001  a fault of ours, told where the call is
        return pickle.dumps(RuntimeError(repr(error)), pickle.HIGHEST_PROTOCOL)


if __name__ == "__main__":
    main()
