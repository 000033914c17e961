"""What a way of reaching clients has to be able to do, and what each of its clients has."""

from __future__ import annotations

from typing import Protocol

from delivery.endings import Ending
from servioticy.domain.model import LastUpdate

WRITE_BUFFER_BYTES = 64 * 1024
"""So much may be unsent before `Connection.send` waits."""
CLOSE_SECONDS = 2.0
"""So long may a connection take to close; then it is aborted."""


class Disconnected(Exception):
    """The connection is closed, or is being closed: nothing more can be sent."""


class Transport(Protocol):
    """Takes clients in, has each decided on, and hands those that may watch to the hub."""

    async def start(self) -> None:
        """Take clients from now on. Raises OSError where that cannot be."""

    async def stop(self) -> None:
        """Take no more clients, close all with STOPPING, and return when they have gone.

        The hub aborts whoever has not gone after CLOSE_SECONDS.
        """


class Connection(Protocol):
    """One client that watches a stream. All methods belong to the event loop's thread."""

    def write(self, update: LastUpdate) -> None:
        """Begin to send an update, and do not wait; does nothing where the connection closes.

        Raises whatever fails; the connection is then closed with FAILED.
        """

    async def send(self, update: LastUpdate) -> None:
        """Send an update, and wait until there is room for the next. Raises Disconnected."""

    def unsent_bytes(self) -> int:
        """Return how many bytes are kept for the client because it has not taken them yet."""

    async def close(self, ending: Ending) -> None:
        """Tell the client why, and close. Does not raise."""

    def abort(self) -> None:
        """End the connection at once; what the client has not taken is lost."""

    async def wait_closed(self) -> None:
        """Return when the connection is closed; what the client says meanwhile is ignored."""
