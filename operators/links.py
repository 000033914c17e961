"""What is between the platform and one process of a program: two ends of something that carries.

The platform's end and the program's are sockets that carry frames (wire.py), whatever is between
them: nothing, where both are of one pair, or the lists of a store (`operators/queues`).
"""

from __future__ import annotations

import socket
from typing import Protocol


class Link(Protocol):
    """What is between, for as long as the platform's end is open."""

    ours: socket.socket
    """for who has asked for it, to be closed when the program ends"""
    theirs: socket.socket
    """for the program, to be closed here once it has it"""

    @property
    def lost(self) -> str:
        """Why no more comes though the program may be well: nobody's fault; "" if it is not so."""


class Links(Protocol):
    """Makes links; may be used from several threads."""

    def link(self) -> Link:
        """Make one. Raises Unavailable, OSError."""

    def close(self) -> None:
        """Wait until nothing is left of those that were made; their platform's ends are closed."""


class Pair:
    """Nothing is between: both ends are one pair of sockets."""

    lost = ""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()


class Pairs:
    """Makes pairs."""

    def link(self) -> Link:
        """Make one. Raises OSError."""
        return Pair()

    def close(self) -> None:
        """Nothing is left."""
