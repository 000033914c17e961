"""A port of delivery or the broker: who comes is let in through a door, and not in one go."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from delivery.admission.pending import PendingConnections
from servioticy.doors.certificate import Certificate
from servioticy.doors.door import Glance
from servioticy.doors.vestibule import door

WAITING_TO_BE_ACCEPTED = 4_096
"""Those wait in Linux, as far as it is allowed to (`net.core.somaxconn`)."""


class Entrance:
    """Keeps to the protocol `House`. All methods belong to the event loop's thread."""

    def __init__(
        self,
        pending: PendingConnections,
        make: Callable[[], asyncio.BaseProtocol],
        is_nonsense: Callable[[bytes], bool],
        refusal: bytes,
        certificate: Certificate | None = None,
        plain_text: bytes = b"",
    ) -> None:
        """`make` makes what takes a new connection; `is_nonsense` is asked about the first bytes
        of one, of which there are perhaps none yet, and `refusal` is the answer to it. With a
        certificate all speak TLS, and `plain_text` is the answer to who does not.
        """
        self._pending = pending
        self._make = make
        self._is_nonsense = is_nonsense
        self._refusal = refusal
        self._loop = asyncio.get_running_loop()
        self.door = door(self._loop, self, pending.most, certificate, plain_text)
        self._listeners: list[socket.socket] = []
        self._arriving: set[asyncio.Task[Any]] = set()
        """The loop itself keeps no hold on its tasks."""

    def open(self, bound: Iterable[Any]) -> None:
        """Let in who comes to these sockets of a server, which has begun to do so itself."""
        for each in bound:
            self._loop.remove_reader(each.fileno())
            listener = socket.socket(fileno=os.dup(each.fileno()))
            listener.listen(WAITING_TO_BE_ACCEPTED)
            self._listeners.append(listener)
        self.door.attend(self._listeners)

    def close(self) -> None:
        """Let in nobody any more."""
        self.door.close()
        for each in self._listeners:
            each.close()
        self._listeners.clear()

    # What the door asks

    def glance(self, first: bytes, _address: str) -> Glance:
        """Nobody is known before a request is read."""
        return Glance.NONSENSE if self._is_nonsense(first) else Glance.STRANGER

    def refuse(self, _first: bytes) -> bytes:
        """Return what everybody gets who says nothing that we could answer."""
        return self._refusal

    def enter(self, client: socket.socket) -> None:
        """Make a connection of it."""
        made = partial(self.protocol, client)
        task = self._loop.create_task(self._loop.connect_accepted_socket(made, client))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    def protocol(self, _client: socket.socket) -> asyncio.BaseProtocol:
        """Return what takes a new connection."""
        return self._make()

    def make_room(self) -> None:
        """Close a connection that has said nothing yet, or was refused."""
        self._pending.make_room()
