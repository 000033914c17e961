"""The door: who connects is taken in from Linux at once, looked at, and let in by address in turn.

What waits in Linux's queue has one order, so those who come in a crowd would keep out whoever
comes behind them. So it is emptied with next to nothing done for each: who shows a good token goes
in, what is no request is told so and closed, and all others wait here for one small part of the
loop, address after address.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import time
from collections.abc import Callable, Hashable, Iterable
from enum import Enum, auto
from functools import partial
from typing import Protocol

from servioticy.doors.porch import Loop, Porch

AT_ONCE = 64
"""Taken in before the loop has its other turns."""
SURELY_AT_ONCE = 32
"""So many are taken in whenever it is the door's turn: who is known is among them."""
GLANCE_BYTES = 2_048
"""Of what somebody has sent first, what is looked at before anything is made for it."""
DISCARDED_BYTES = 65_536
"""Of what is no request: read and thrown away, so that our answer reaches its client."""
ENTERING_SECONDS = 0.0001
"""What is charged for a connection that is made, beside what is measured of it: the loop itself
calls what we ask it for."""
PAUSE_SECONDS = 0.1
"""Until we accept again where that has failed."""
ROOM_AT_ONCE = 8
"""Of those who wait here, and of silent connections, for want of open files."""
NO_FILES = (errno.EMFILE, errno.ENFILE)
"""Our process, or the machine, may open no more files: a connection has to close."""

log = logging.getLogger("servioticy.doors")


class Glance(Enum):
    """What the first bytes of a connection say."""

    KNOWN = auto()
    """Somebody who is known: it waits for nobody."""
    STRANGER = auto()
    """Nothing yet, or a request of nobody who is known."""
    NONSENSE = auto()
    """It is no request, whatever follows."""


class House(Protocol):
    """What is behind a door. Everything is called in the thread of the loop."""

    def glance(self, first: bytes, address: str) -> Glance:
        """Tell what these bytes are: the first that came from there, perhaps none yet."""

    def refuse(self, first: bytes) -> bytes:
        """Return what is to be answered to nonsense."""

    def enter(self, client: socket.socket) -> None:
        """Make a connection of it."""

    def make_room(self) -> None:
        """Close a connection that says nothing: there are no more files."""


class ReadingLoop(Loop, Protocol):
    """The event loop, as far as the door needs it."""

    def add_reader(self, listener: socket.socket, callback: Callable[[], object], /) -> object:
        """Call it whenever somebody waits."""

    def remove_reader(self, listener: socket.socket, /) -> object:
        """Call it no more."""


class _Caller:
    """Somebody who waits at the door."""

    __slots__ = ("address", "client", "door")

    def __init__(self, door: Door, client: socket.socket, address: str) -> None:
        self.door = door
        self.client = client
        self.address = address

    def abort(self) -> None:
        """Go: too many wait."""
        self.door.forget(self)
        self.client.close()


class Door:
    """Lets in who comes to the listening sockets. Everything happens in the thread of the loop."""

    def __init__(
        self,
        loop: ReadingLoop,
        house: House,
        most: int,
        clock: Callable[[], float] = time.thread_time,
        porch: Porch | None = None,
    ) -> None:
        """So many wait here at `most`: each has an open file. `clock` measures what a turn takes
        of the processor. `porch` is the part of strangers, where others have turns of it, too.
        """
        self._most = most
        self._loop = loop
        self._house = house
        self._gate = Porch(loop, clock)
        """Taking in from Linux: a part of its own, else those who wait here would shut it."""
        self._porch = porch or Porch(loop, clock)
        """Making connections of strangers."""
        self._listeners: list[socket.socket] = []
        self._waiting: dict[_Caller, None] = {}
        """Those who wait here, the longest first."""
        self.taken_in = 0
        """Connections that were accepted so far."""

    def __len__(self) -> int:
        """Return how many wait to be let in."""
        return len(self._waiting)

    def attend(self, listeners: Iterable[socket.socket]) -> None:
        """Let in who connects, from now on."""
        for each in listeners:
            each.setblocking(False)
            self._listeners.append(each)
            self._listen(each)

    def close(self) -> None:
        """Let in nobody any more; who waits is closed. The listening sockets are not."""
        listeners, self._listeners = self._listeners, []
        for each in listeners:
            self._loop.remove_reader(each)
        for caller in list(self._waiting):
            caller.abort()

    def forget(self, caller: Hashable) -> None:
        """It does not wait any more."""
        self._waiting.pop(caller, None)  # type: ignore[call-overload]

    def abort(self) -> None:
        """Wait no longer for a turn of the gate; it never does, as it is the only one."""

    def _listen(self, listener: socket.socket) -> None:
        if listener in self._listeners:
            self._loop.add_reader(listener, partial(self._accept, listener))

    def _accept(self, listener: socket.socket) -> None:
        if not self._gate.turn(listener, self, partial(self._take_in, listener)):
            self._loop.remove_reader(listener)  # the others wait where they are

    def _take_in(self, listener: socket.socket) -> None:
        """Take in who waits in Linux, but not so many at once that the others notice."""
        self._listen(listener)
        if listener not in self._listeners:
            return
        for number in range(AT_ONCE):
            if number >= SURELY_AT_ONCE and self._gate.owed() > 0:
                return
            try:
                client, address = listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                self._cannot_accept(listener, error)
                return
            client.setblocking(False)
            self.taken_in += 1
            self._look(client, address[0])

    def _cannot_accept(self, listener: socket.socket, error: OSError) -> None:
        """Tried again at once it would fail again, and nothing else would be done."""
        log.warning("cannot_accept", extra={"reason": str(error)})
        self._loop.remove_reader(listener)
        self._loop.call_later(PAUSE_SECONDS, partial(self._listen, listener))
        if error.errno in NO_FILES:
            for each in list(self._waiting)[:ROOM_AT_ONCE]:
                each.abort()
            for _ in range(ROOM_AT_ONCE):
                self._house.make_room()

    def _look(self, client: socket.socket, address: str) -> None:
        if self._is_decided(client, address):
            return
        caller = _Caller(self, client, address)
        self._waiting[caller] = None
        if len(self._waiting) > self._most:
            next(iter(self._waiting)).abort()
        self._porch.turn(address, caller, partial(self._let_in, caller))

    def _let_in(self, caller: _Caller) -> None:
        """Make a connection of somebody whose turn it is, and who may have spoken meanwhile."""
        if caller not in self._waiting:
            return
        self.forget(caller)
        if not self._is_decided(caller.client, caller.address):
            self._porch.charge(ENTERING_SECONDS)
            self._house.enter(caller.client)

    def _is_decided(self, client: socket.socket, address: str) -> bool:
        """Let in who is known, and close what is nonsense; False: it is a stranger."""
        try:
            first = client.recv(GLANCE_BYTES, socket.MSG_PEEK)
        except BlockingIOError:
            first = b""
        except OSError:
            client.close()  # it has gone
            return True
        glance = self._house.glance(first, address)
        if glance is Glance.KNOWN:
            self._house.enter(client)
        elif glance is Glance.NONSENSE:
            _tell(client, self._house.refuse(first))
        return glance is not Glance.STRANGER


def _tell(client: socket.socket, answer: bytes) -> None:
    """Answer and close; with something unread the answer would not arrive."""
    with client, contextlib.suppress(OSError):
        client.recv(DISCARDED_BYTES)
        client.send(answer)
        client.shutdown(socket.SHUT_WR)
