"""How often the platform is asked again for what it has not taken."""

from __future__ import annotations

from http import HTTPStatus

from broker.client import Client
from delivery.rest_api import RETRY_STATUSES

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0


MAX_FAULTS = 4
"""Tries that end in a fault of ours: that may be the moment's, or the message's."""


class Retries:
    """The tries for one message, or for some that go together."""

    def __init__(self, client: Client, *, is_promise: bool) -> None:
        self._client = client
        self._is_promise = is_promise
        self._faults = 0
        self._pause = FIRST_PAUSE_SECONDS

    async def again(self, status: int, seconds: float | None = None) -> bool:
        """Tell whether to try again after such an answer, when it is time to.

        Without a wish for that, and for a client that is gone, there is one try.
        """
        if status not in RETRY_STATUSES:
            if status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return False
            self._faults += 1
        if self._faults >= MAX_FAULTS or not self._is_promise or not self._client.is_open:
            return False
        await self._client.ended_within(seconds or self._pause)
        self._pause = min(LONGEST_PAUSE_SECONDS, self._pause * 2)
        return True
