"""Whether updates may come into the log: asked alike, whatever way they come."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ingest.hints import UpdateHints
from ingest.quotas import SendersQuotas
from ingest.updates_waiting import UpdatesWaiting
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import TOO_FAR_AHEAD, TOO_MUCH
from servioticy.domain.model import SensorUpdate
from servioticy.domain.quotas import Exceeded
from servioticy.domain.timing import too_far_ahead
from servioticy.domain.topics import largest_update
from servioticy.ports.addresses import Address
from servioticy.refusals import Refused, TooLarge
from servioticy.settings.outward import Requests


class Accepting:
    """The rules for what the log takes: each update by itself, and how many of them."""

    def __init__(
        self,
        settings: Requests,
        waiting: UpdatesWaiting,
        quotas: SendersQuotas,
        clock: Callable[[], float],
    ) -> None:
        self._largest_body = settings.max_body_bytes
        self._largest = largest_update(settings.max_body_bytes)
        self._ahead = settings.max_future_seconds
        self._waiting = waiting
        self._quotas = quotas
        self._clock = clock
        self.hints = UpdateHints(clock)
        """What those who send are told of what is taken."""

    def check_body(self, body: bytes) -> None:
        """Raises Refused for none, and for a larger one than the platform takes."""
        if len(body) > self._largest_body:
            raise TooLarge
        if not body:
            raise Refused("No data in the request")

    def fault(self, update: SensorUpdate) -> BadDocument | None:
        """Return why the log does not take this update; None if it does."""
        # Longer than what was sent, perhaps: 1e9 is kept as 1000000000.0
        if len(update.document) > self._largest:
            return BadDocument("The update is too large", "", TOO_MUCH)
        if too_far_ahead(update.timestamp, self._clock(), self._ahead):
            return BadDocument(
                f"The lastUpdate {update.timestamp} is more than {self._ahead:g} seconds ahead of "
                "the platform's clock; it would silence what is computed from this stream",
                "/lastUpdate",
                TOO_FAR_AHEAD,
            )
        return None

    def count(self, streams: Collection[Address], updates: int, size: int) -> Exceeded | None:
        """Count so many updates, of so many bytes, that come now; else what keeps them out.

        All are for streams of one tenant. Raises Unavailable.
        """
        for stream in streams:
            exceeded = self._waiting.beyond(stream)
            if exceeded is not None:
                return exceeded
        tenant = next((each.tenant for each in streams), None)
        return None if tenant is None else self._quotas.send(tenant, updates, size)

    def give_back(self, tenant: int, updates: int, size: int) -> None:
        """Updates that were counted are not in the log, as far as is known."""
        self._quotas.give_back(tenant, updates, size)
