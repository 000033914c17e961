"""One table from error to answer, and one body for all of them."""

from __future__ import annotations

import logging

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from api.http.answers import JSON, answer
from api.http.problems import content, default_message
from api.http.read_after_write import NotYet
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import INCOMPLETE_GROUP, UNKNOWN_STREAM
from servioticy.domain.quotas import Exceeded
from servioticy.errors import Rejected, ServioticyError, Stranger, Unavailable

log = logging.getLogger("api")

PROBLEM_JSON = "application/problem+json"
SERVER = "api.servIoTicy.com"

STATUSES = {INCOMPLETE_GROUP: 404, UNKNOWN_STREAM: 404}
"""Of what is wrong with a document, by its code: where it is not 400."""


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


class TooMany(Refused):
    """The caller is to send less, or later."""

    status = 429


class OverQuota(TooMany):
    """The caller has used up a quota."""

    def __init__(self, exceeded: Exceeded) -> None:
        super().__init__(exceeded.message)
        self.exceeded = exceeded


def within(exceeded: Exceeded | None) -> None:
    """Raises OverQuota where a quota is exceeded."""
    if exceeded is not None:
        raise OverQuota(exceeded)


class TooLarge(Refused):
    """The body, or what would be stored of it, is larger than the platform takes."""

    status = 413

    def __init__(self) -> None:
        super().__init__(default_message(413))


def handle_errors(app: Flask) -> None:
    """Answer every error of the application by the table."""
    app.register_error_handler(Exception, told)


def told(error: Exception) -> Response:
    """Return the answer that tells an error."""
    status, said = _status_and_message(error)
    wrong = error.all if isinstance(error, BadDocument) else ()
    body = content(status, said, wrong, _hint(error))
    if isinstance(error, OverQuota):
        body["quota"] = error.exceeded.about()
    response = answer(body, status, {"Server": SERVER})
    response.content_type = _form()
    if status in (429, 503):
        response.headers["Retry-After"] = "1"
    if isinstance(error, OverQuota):
        response.headers.update(error.exceeded.headers())
    if isinstance(error, Outdated):
        response.headers["ETag"] = error.etag
    if isinstance(error, HTTPException) and status == 405:
        response.headers.extend(
            (name, value) for name, value in error.get_headers() if name == "Allow"
        )
    return response


def _hint(error: Exception) -> str:
    """Return what to do next: it stands in `detail`, behind the message."""
    if isinstance(error, Refused | BadDocument):
        return error.hint
    if isinstance(error, HTTPException) and error.code == 404:
        return "No route has this address: docs/rest.md lists all of them"
    return ""


def _form() -> str:
    """Return the Content-Type: RFC 9457's where the client names it, else what it always was."""
    accepted = request.accept_mimetypes
    return PROBLEM_JSON if PROBLEM_JSON in accepted.values() else JSON


def _status_and_message(error: Exception) -> tuple[int, str]:
    """Return status and message by the table.

    What is not in it is ours to mend, and no business of the caller's.
    """
    if isinstance(error, BadDocument):
        return STATUSES.get(error.code, 400), error.reason
    if isinstance(error, Refused):
        return error.status, str(error)
    if isinstance(error, Stranger):
        return 403, str(error)
    if isinstance(error, NotYet):
        return 503, str(error)
    if isinstance(error, Unavailable):
        log.warning("unavailable", extra={"reason": str(error)})
        # What does not answer, without the addresses and reasons that follow.
        return 503, str(error).partition(":")[0]
    if isinstance(error, Rejected):
        return 413, default_message(413)
    if isinstance(error, HTTPException) and error.code is not None and error.code < 500:
        return error.code, default_message(error.code)
    log.error("request_failed", exc_info=error)
    return 500, default_message(500)
