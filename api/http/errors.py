"""One table from error to answer, and one body for all of them."""

from __future__ import annotations

import logging

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from api.http.answers import JSON, answer
from api.http.problems import content, default_message
from api.http.read_after_write import NotYet
from servioticy.domain.documents import BadDocument
from servioticy.errors import Unavailable
from servioticy.refusals import Outdated, OverQuota, Refused, status_and_message

log = logging.getLogger("api")

PROBLEM_JSON = "application/problem+json"
SERVER = "api.servIoTicy.com"
NO_ROUTE = "No route has this address: docs/rest.md lists all of them."
DELIVERYS = "Sockets and events are delivery's, which has a port of its own: docs/rest/live.md."
_OF_DELIVERY = ("/live", "/events")


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
    if isinstance(error, MethodNotAllowed):
        methods = sorted({*(error.valid_methods or ())} - {"HEAD", "OPTIONS"})
        return f"This address has {', '.join(methods)}: docs/rest.md says what each does."
    if isinstance(error, HTTPException) and error.code == 404:
        return DELIVERYS if request.path.rstrip("/").endswith(_OF_DELIVERY) else NO_ROUTE
    return ""


def _form() -> str:
    """Return the Content-Type: RFC 9457's where the client names it, else what it always was."""
    accepted = request.accept_mimetypes
    return PROBLEM_JSON if PROBLEM_JSON in accepted.values() else JSON


def _status_and_message(error: Exception) -> tuple[int, str]:
    """Return status and message by the table.

    What is not in it is ours to mend, and no business of the caller's.
    """
    if isinstance(error, NotYet):
        return 503, str(error)
    if isinstance(error, Unavailable):
        log.warning("unavailable", extra={"reason": str(error)})
    found = status_and_message(error)
    if found is not None:
        return found
    if isinstance(error, HTTPException) and error.code is not None and error.code < 500:
        return error.code, default_message(error.code)
    log.error("request_failed", exc_info=error)
    return 500, default_message(500)
