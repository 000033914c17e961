"""Behind the door of the API: who is known by the token of its first request, what is none."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Any

from api.edge.connection import Connection
from api.edge.edge import Edge
from api.edge.incoming import first_token
from api.edge.outgoing import last_answer
from servioticy.doors.door import Glance
from servioticy.http_heads import MALFORMED_LINE, is_a_beginning


class Hall:
    """Keeps to the protocol `House`."""

    def __init__(self, edge: Edge, loop: asyncio.AbstractEventLoop) -> None:
        self._edge = edge
        self._loop = loop
        self._arriving: set[asyncio.Task[Any]] = set()
        """The loop itself keeps no hold on its tasks."""

    def glance(self, first: bytes, address: str) -> Glance:
        """Look for a token that was good a moment ago."""
        token = first_token(first)
        if token and self._edge.is_known(self._edge.share(token, address)):
            return Glance.KNOWN
        return Glance.STRANGER if is_a_beginning(first) else Glance.NONSENSE

    def refuse(self, _first: bytes) -> bytes:
        """Say what is wrong, as to any request whose first line is malformed."""
        answer = self._edge.refusal(400, MALFORMED_LINE)
        self._edge.metrics.answered("", answer.route, answer.status[:3], None)
        return last_answer(answer, self._edge.date())

    def enter(self, client: socket.socket) -> None:
        """Make a connection of it, which counts from then on."""
        if self._edge.stopping:
            client.close()
            return
        made = partial(self.protocol, client)
        task = self._loop.create_task(self._loop.connect_accepted_socket(made, client))
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    def protocol(self, client: socket.socket) -> Connection:
        """Return what takes the connection of this socket."""
        return Connection(self._edge, client)

    def make_room(self) -> None:
        """Close whoever keeps us waiting longest."""
        self._edge.make_room()
