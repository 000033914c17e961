"""The one body of every error: the original's three members, then those of RFC 9457."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from servioticy.domain.documents import BadDocument

INFO = "docs.servIoTicy.com"
TYPES = "https://servioticy.org/problems/"
"""What the name of each type begins with. It is a name: nothing has to answer there."""
MAX_MESSAGE = 500
"""A message may quote what the client sent; not all of it."""
MAX_ERRORS = 50
"""Of what is wrong with one document, the places that are told."""


class Problem(NamedTuple):
    """A kind of error: its name, which stays, and what it is in general."""

    name: str
    title: str
    message: str
    """where nothing more is known of it; the original's words, if it has any"""


PROBLEMS = {
    400: Problem("bad-request", "The request is not understood", "Bad request"),
    401: Problem(
        "not-authorized",
        "It is somebody else's",
        "Access denied, please check your credentials!",
    ),
    403: Problem("access-denied", "No token, or none for this", "Access was denied!"),
    404: Problem(
        "not-found", "What the request names is not there", "Not found. Check the documentation"
    ),
    405: Problem(
        "method-not-allowed",
        "The address has no such method",
        "Method not allowed. Check the documentation",
    ),
    406: Problem("not-acceptable", "There is no answer in that form", "Not acceptable"),
    408: Problem(
        "request-timeout",
        "The request took too long to come",
        "The request did not arrive in time",
    ),
    409: Problem(
        "conflict", "It does not go together with what is there", "Conflict with what is there"
    ),
    412: Problem(
        "precondition-failed", "It has changed meanwhile", "The Service Object has changed"
    ),
    413: Problem("too-large", "The request is too large", "The request is too large"),
    415: Problem("unsupported-media-type", "The body has another form", "Unsupported Media Type"),
    429: Problem(
        "too-many-requests",
        "You ask more than your share",
        "Too many of your requests are waiting; try again later",
    ),
    431: Problem("headers-too-large", "The headers are too many or too long", "Too many headers"),
    500: Problem("internal-error", "Something of ours failed", "Internal Server Error"),
    501: Problem("not-implemented", "The transfer is not understood", "Not implemented"),
    503: Problem(
        "unavailable",
        "It cannot be done now",
        "Too many requests are waiting; try again later",
    ),
}
INVALID = Problem("invalid-content", "What was sent is not acceptable", "")
"""Of a document, an update or criteria of which some part is wrong: `errors` tells which."""


def default_message(status: int) -> str:
    """Return what is said of a status where nothing more is known."""
    return PROBLEMS.get(status, PROBLEMS[400]).message


def content(
    status: int, message: str = "", wrong: Sequence[BadDocument] = (), hint: str = ""
) -> dict[str, Any]:
    """Return the body of every error; without a message, the one of its status.

    `wrong` are the parts of what was sent that are not acceptable, the first one first; its
    place and code stand beside the message, too.
    """
    problem = INVALID if wrong else PROBLEMS.get(status, PROBLEMS[400])
    said = (message or default_message(status))[:MAX_MESSAGE]
    body: dict[str, Any] = {
        "status": status,
        "message": said,
        "info": INFO,
        "type": TYPES + problem.name,
        "title": problem.title,
        "detail": _both(said, hint)[:MAX_MESSAGE],
    }
    if wrong:
        body |= {"pointer": wrong[0].pointer, "code": wrong[0].code}
        body["errors"] = [_part(each) for each in wrong[:MAX_ERRORS]]
    return body


def _both(said: str, hint: str) -> str:
    """Return two sentences, whatever the first one ends with."""
    end = "" if said.endswith((".", "!", "?", ":")) else "."
    return f"{said}{end} {hint}" if hint else said


def _part(wrong: BadDocument) -> dict[str, str]:
    detail = wrong.reason[:MAX_MESSAGE]
    return {"pointer": wrong.pointer, "code": wrong.code, "detail": detail}
