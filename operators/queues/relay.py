"""The process beside a program: its socket on one side, its two lists on the other.

The program itself speaks frames, wherever they come from, and never reaches the store: so what it
may put there is bounded by who stands between. Standard input says as one line of JSON where the
store is (`address`), who asks (its user may do nothing but take from `takes` and give to `gives`),
and how many bytes may be under way (`most`); when it ends, this ends. Exits with LOST where the
store is lost.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable
from typing import Any

from operators.queues.pumping import Given, Most, give, take
from operators.queues.resp import Address, Connection

LOST = 3


def main(descriptor: int) -> None:
    """Carry frames between this socket and the lists until either side ends."""
    begin(json.loads(sys.stdin.buffer.readline()), socket.socket(fileno=descriptor))
    while sys.stdin.buffer.read(1024):
        pass
    os._exit(0)


def begin(said: dict[str, Any], program: socket.socket) -> None:
    """Begin to carry, in threads; when the program ends, this process does."""
    place, most = Address(*said["address"]), Most(*said["most"])
    given = Given(most)

    def from_program() -> None:
        store = Connection(place)
        with program.makefile("rb") as source:
            give(source, store, said["gives"], most, given)
        os._exit(0)

    def to_program() -> None:
        store = Connection(place)
        try:
            take(store, said["takes"], program, lambda: False, given)
            program.shutdown(socket.SHUT_WR)
        except OSError:
            return  # it has ended, and who reads from it says so

    for each in (from_program, to_program):
        threading.Thread(target=_or_lost, args=(each,), daemon=True).start()


def _or_lost(carry: Callable[[], None]) -> None:
    try:
        carry()
    except Exception:  # noqa: BLE001  whatever it is, who waits for answers is not to wait
        os._exit(LOST)


if __name__ == "__main__":
    main(int(sys.argv[1]))
