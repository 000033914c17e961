"""A client of whom it is not known who it is: so it may be for a while, and then it has to go."""

from __future__ import annotations

import asyncio

from broker.client import Client, nothing
from broker.wire import Wire

STRANGE_SECONDS = 60.0
"""Long enough to claim, or to name a token in a topic."""


class Strangeness:
    """Ends with the client, with its being known, or by closing it."""

    def __init__(self, client: Client, wire: Wire) -> None:
        self._client = client
        self._wire = wire
        loop = asyncio.get_running_loop()
        self._end = loop.call_later(STRANGE_SECONDS, self._close)
        client.became_known = self._known

    def stop(self) -> None:
        """Look no more, and hold nobody: what a connection was made of goes with it."""
        self._end.cancel()
        self._client.became_known = nothing

    def _known(self) -> None:
        self.stop()
        if self._wire.part is not None:
            self._wire.part.tenant = self._client.tenant

    def _close(self) -> None:
        self._client.close("say who you are within a minute")
