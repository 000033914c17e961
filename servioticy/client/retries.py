"""When a request is sent again, and after which pause: the same with and without asyncio."""

from __future__ import annotations

import random
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from servioticy.client.answers import Answer, Answered, reason_in
from servioticy.client.calls import Call
from servioticy.errors import Unavailable

HEALING = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
"""What the API answers, or a proxy in its place, while a part of it starts again or is full."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often something is tried, and how long we wait in between.

    A pause doubles each time, and a part of it is chance, so that many who were refused
    together do not come back together. It is never shorter than the answer asks for
    (`Retry-After`); where that is longer than `longest_pause_seconds`, we give up at once.
    """

    tries: int = 6
    first_pause_seconds: float = 0.1
    longest_pause_seconds: float = 30.0

    def pause(self, attempt: int, asked: float | None = None) -> float | None:
        """Return the pause after this attempt, of which the first is 0; None: no other."""
        if attempt + 1 >= self.tries or (asked or 0.0) > self.longest_pause_seconds:
            return None
        pause = min(self.longest_pause_seconds, self.first_pause_seconds * (1 << attempt))
        return max(asked or 0.0, pause * (0.5 + random.random() / 2))  # noqa: S311


NEVER = Retries(tries=1)


class Attempts:
    """One request, from its first attempt to its last."""

    def __init__(self, call: Call[Any], retries: Retries) -> None:
        self._call = call
        self._retries = retries
        self._made = 0

    def failed(self, error: Unavailable) -> float:
        """Return the pause before the next attempt where no whole answer came.

        Raises Unavailable where there is none.
        """
        pause = self._pause(None) if self._call.harmless_again else None
        if pause is None:
            what = f"{self._call.method} {self._call.path}"
            raise Unavailable(f"no answer to {what}: {error}") from error
        return pause

    def refused(self, answer: Answer) -> float:
        """Return the pause before the next attempt after an answer that is an error.

        Raises Answered where trying again cannot help, Unavailable where it did not. Who is
        told to come later (429) has had nothing done; after any other answer something may
        have been, which is only asked for again where a second time does no harm.
        """
        if not self._heals(answer.status):
            raise Answered.of(answer)
        come_later = answer.status == HTTPStatus.TOO_MANY_REQUESTS
        again = come_later or self._call.harmless_again
        pause = self._pause(answer.retry_after()) if again else None
        if pause is None:
            raise Answered.of(answer) if come_later else self._given_up(reason_in(answer.body))
        return pause

    def _heals(self, status: int) -> bool:
        if status == HTTPStatus.CONFLICT:  # our own first attempt, which the API still works on
            return self._call.has_key and self._made > 0
        return status in HEALING

    def _pause(self, asked: float | None) -> float | None:
        self._made += 1
        return self._retries.pause(self._made - 1, asked)

    def _given_up(self, problem: str) -> Unavailable:
        return Unavailable(
            f"the API does not take {self._call.method} {self._call.path}: {problem}"
        )
