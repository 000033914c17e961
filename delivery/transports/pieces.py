"""What a client says is worked on a piece at a time, each in a turn of its owner's.

What has been read costs as much as there is in it, ten thousand pings in one packet or a request
of single bytes; nothing more is read while a piece of it waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

from delivery.turns import Turns


def _nothing(_piece: bytes) -> None:
    """Nobody hears it."""


def _never() -> bool:
    """There is nothing more to read."""
    return False


class Pieces:
    """What has come over one connection and is not worked on yet."""

    __slots__ = (
        "_later",
        "_may_read",
        "_piece",
        "_said",
        "_take",
        "_transport",
        "_turns",
        "_waits",
        "owner",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        owner: Hashable,
        turns: Turns,
        piece: int,
        take: Callable[[bytes], None],
        may_read: Callable[[], bool],
    ) -> None:
        """`take` works on a piece; `may_read` tells whether more may be read afterwards."""
        # What somebody says first has turns of its own: who has said nothing so far does not wait
        # for all of the same address that never come to an end.
        self.owner: Hashable = (owner, "first")
        self._later: Hashable | None = owner
        self._transport = transport
        self._turns = turns
        self._piece = piece
        self._take = take
        self._may_read = may_read
        self._said = bytearray()
        self._waits = False

    def be_of(self, owner: Hashable, turns: Turns, piece: int) -> None:
        """Take these turns from now on: it is known whose connection it is."""
        self.owner, self._turns, self._piece = owner, turns, piece
        self._later = None

    def add(self, data: bytes) -> None:
        """Work on what has come, now or later."""
        self._said += data
        if self._waits:
            self._transport.pause_reading()  # others may have let it read again
        else:
            self._ask()

    def end(self) -> None:
        """Hear nothing any more.

        And hold nobody: what a connection was made of is to go with it. Else each that has gone
        would wait until all that lives is looked through for garbage, which takes the longer the
        more of them there were, and nobody is served meanwhile.
        """
        self._said.clear()
        self._take, self._may_read = _nothing, _never

    def _ask(self) -> None:
        self._waits = True
        if not self._turns.ask(self.owner, self._work):
            self._transport.pause_reading()

    def _work(self) -> bool:
        self._waits = False
        if self._transport.is_closing():
            self._said.clear()
            return False
        piece = bytes(self._said[: self._piece])
        del self._said[: self._piece]
        if self._later is not None:
            self.owner, self._later = self._later, None
        self._take(piece)
        if self._said:
            self._ask()
        elif self._may_read() and not self._transport.is_closing():
            self._transport.resume_reading()
        return True
