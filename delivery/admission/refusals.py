"""What delivery does not do for a caller, and why: in one place, as REST says it too."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

import orjson

from delivery.endings import Ending
from servioticy.domain.quotas import Exceeded

RETRY_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Refusal:
    """The caller may not have that, and why."""

    status: int
    message: str
    retry_seconds: int | None = None
    """Another try may succeed after so many seconds; None: nothing is known about that."""

    exceeded: Exceeded | None = None
    """The quota that the caller has used up."""

    @property
    def ending(self) -> Ending:
        """Why that ends now which was not refused before."""
        is_token = self.status == HTTPStatus.FORBIDDEN
        return Ending.REVOKED if is_token else Ending.NOT_READABLE

    def body(self) -> bytes:
        """Return the error body that the REST contract prescribes."""
        about = {} if self.exceeded is None else {"quota": self.exceeded.about()}
        said = {"status": self.status, "message": self.message, "info": "docs.servIoTicy.com"}
        return orjson.dumps(said | about)

    def headers(self) -> dict[str, str]:
        """Return what tells when to try again."""
        if self.exceeded is not None:
            return self.exceeded.headers()
        return {} if self.retry_seconds is None else {"Retry-After": str(self.retry_seconds)}


class Refused(Exception):
    """This is not to be had."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def beyond(exceeded: Exceeded) -> Refusal:
    """Return what whoever has used up a quota is told."""
    return Refusal(429, exceeded.message, exceeded.retry_after, exceeded)


NO_TOKEN = Refusal(403, "Missing Authorization Header")
UNKNOWN_TOKEN = Refusal(403, "Access was denied!")
NOT_FOR_THIS = Refusal(403, "The web object has presented the wrong API_TOKEN")
NOT_YOURS = Refusal(401, "Not authorized")
NO_SERVICE_OBJECT = Refusal(404, "The Service Object was not found.")
NO_STREAM = Refusal(404, "This Service Object does not have this stream.")
NO_ANSWER = Refusal(503, "The store does not answer; try again", RETRY_SECONDS)
