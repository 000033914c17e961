"""What became of a message that a client has published, by the statuses of REST."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from delivery.admission.refusals import Refusal
from delivery.rest_api import RETRY_STATUSES, ApiResponse
from ingest import updates
from servioticy.refusals import OverQuota, status_and_message

LONGEST_SECONDS = 30.0
AWAY_SECONDS = 1.0
"""Until it is tried again where a part of the platform does not answer."""
FAULT = "Something of ours failed"


class Outcome(NamedTuple):
    """A status, and what there is to tell of it. 0: nobody has said anything."""

    status: int
    message: str = ""
    retry_seconds: float | None = None
    warnings: Sequence[str] = ()
    """of what is odd about a message though it is taken"""

    @property
    def is_taken(self) -> bool:
        """Whether it is done, and kept."""
        return 200 <= self.status < 300

    @property
    def is_for_now(self) -> bool:
        """Whether it is about the moment, not about what was sent."""
        return self.status in RETRY_STATUSES


ACCEPTED = Outcome(202)


def of_response(response: ApiResponse) -> Outcome:
    """Return what the REST API says."""
    return Outcome(response.status, response.message, response.retry_seconds)


def of_refusal(refusal: Refusal) -> Outcome:
    """Return what the broker says itself."""
    return Outcome(refusal.status, refusal.message)


def of_update(outcome: updates.Outcome) -> Outcome:
    """Return what became of an update on its way into the log."""
    if isinstance(outcome, updates.Taken):
        return Outcome(202, warnings=outcome.hints)
    status, message = status_and_message(outcome) or (500, FAULT)
    seconds = AWAY_SECONDS if status == 503 else None
    if isinstance(outcome, OverQuota):
        seconds = min(LONGEST_SECONDS, outcome.exceeded.retry_after)
    return Outcome(status, message, seconds)
