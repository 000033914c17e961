"""What is asked for and not done, and why, by the statuses of HTTP: whatever way it was asked.

REST answers with them, and a client that speaks MQTT or STOMP is told the same.
"""

from __future__ import annotations

from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import INCOMPLETE_GROUP, UNKNOWN_STREAM
from servioticy.domain.quotas import Exceeded
from servioticy.errors import Rejected, ServioticyError, Stranger, Unavailable

STATUSES = {INCOMPLETE_GROUP: 404, UNKNOWN_STREAM: 404}
"""Of what is wrong with a document, by its code: where it is not 400."""
TOO_LARGE = "The request is too large"


class Refused(ServioticyError):
    """The request cannot be served, and the caller has to change something.

    `hint` says what to do next, where the message is the original's and stays as it is.
    """

    status = 400

    def __init__(self, message: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class NotAuthorized(Refused):
    """Not authorized"""

    status = 401

    def __init__(self) -> None:
        super().__init__("Not authorized")


class Denied(Refused):
    """Who asks is not known."""

    status = 403


class NotFound(Refused):
    """What the request names does not exist."""

    status = 404


class NoStream(NotFound):
    """This Service Object does not have this stream."""

    def __init__(self) -> None:
        super().__init__(
            "This Service Object does not have this stream.",
            "GET /ID/streams lists those that it has.",
        )


class Conflict(Refused):
    """What is asked for does not go together with what is there."""

    status = 409


class Outdated(Refused):
    """The caller made this change to something older than what is there."""

    status = 412

    def __init__(self, message: str, etag: str) -> None:
        super().__init__(message)
        self.etag = etag


class TooLarge(Refused):
    """The body, or what would be stored of it, is larger than the platform takes."""

    status = 413

    def __init__(self) -> None:
        super().__init__(TOO_LARGE)


class TooMany(Refused):
    """The caller is to send less, or later."""

    status = 429


class OverQuota(TooMany):
    """The caller has used up a quota; `tenant` is who that is, where it is told."""

    def __init__(self, exceeded: Exceeded, tenant: int | None = None) -> None:
        super().__init__(exceeded.message)
        self.exceeded = exceeded
        self.tenant = tenant


def within(exceeded: Exceeded | None) -> None:
    """Raises OverQuota where a quota is exceeded."""
    if exceeded is not None:
        raise OverQuota(exceeded)


def status_and_message(error: BaseException) -> tuple[int, str] | None:
    """Return what is told of an error; None: it is ours to mend, and nobody else's business."""
    if isinstance(error, BadDocument):
        return STATUSES.get(error.code, 400), error.reason
    if isinstance(error, Refused):
        return error.status, str(error)
    if isinstance(error, Stranger):
        return 403, str(error)
    if isinstance(error, Unavailable):
        # What does not answer, without the addresses and reasons that follow.
        return 503, str(error).partition(":")[0]
    if isinstance(error, Rejected):
        return 413, TOO_LARGE
    return None
