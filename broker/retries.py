"""How often the platform is asked again for what it has not taken."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import NamedTuple

from broker.client import Client
from delivery.rest_api import RETRY_STATUSES

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0


class Patience(NamedTuple):
    """How many tries there are; what is about the moment is tried as long as it takes."""

    faults: int
    """Tries that end in a fault of ours: that may be the moment's, or the message's."""
    silences: float
    """Tries that nobody answers: who does not take a batch may close the connection."""


WITH_ONE = Patience(faults=4, silences=math.inf)
WITH_BATCH = Patience(faults=1, silences=3)
"""Then each of its messages is tried alone."""


class Retries:
    """The tries for one message, or for a batch."""

    def __init__(self, client: Client, *, is_promise: bool, patience: Patience) -> None:
        self._client = client
        self._is_promise = is_promise
        self._left = patience
        self._pause = FIRST_PAUSE_SECONDS

    async def again(self, status: int, seconds: float | None = None) -> bool:
        """Tell whether to try again after such an answer, when it is time to.

        Without a wish for that, and for a client that is gone, there is one try.
        """
        faults, silences = self._left
        if not status:
            silences -= 1
        elif status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in RETRY_STATUSES:
            faults -= 1
        elif status not in RETRY_STATUSES:
            return False
        self._left = Patience(faults, silences)
        if not faults or not silences or not self._is_promise or not self._client.is_open:
            return False
        await self._client.ended_within(seconds or self._pause)
        self._pause = min(LONGEST_PAUSE_SECONDS, self._pause * 2)
        return True
