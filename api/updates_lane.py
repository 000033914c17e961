"""Plain updates, taken many at once.

A PUT of an update asks Postgres one question and waits for the broker once, and so do twenty that
come together. What is odd about a request in any way, or would be refused, is left to the
application, which says so in its own words: nothing here answers anything but 202, and 429 to
whoever has used up a quota, which has to cost less than an update.
"""

from __future__ import annotations

from collections.abc import Sequence

from api.edge.calls import Answer, Request
from api.http.answers import COMMON_HEADERS, JSON
from api.http.content_types import NOT_CLAIMED
from api.http.refusals import refusal, status_line
from api.http.warning_headers import warned
from ingest.ingest import Ingest
from ingest.updates import Offered, Outcome, Sent, Taken
from servioticy.domain.model import StreamRef
from servioticy.domain.tokens import read_token
from servioticy.domain.traces import ENVIRON, MAKING
from servioticy.refusals import OverQuota

ROUTE = "/<service_object>/streams/<stream>"
PLAIN_TYPES = frozenset({"", JSON, f"{JSON};charset=UTF-8", f"{JSON}; charset=utf-8", NOT_CLAIMED})


class UpdatesLane:
    """Answers what is plain among requests that came together."""

    def __init__(self, ingest: Ingest) -> None:
        self._ingest = ingest

    def answers(self, requests: Sequence[Request]) -> list[Answer | None]:
        """Return an answer for each update that is in the log now, or that a quota keeps out.

        None: ask the application.
        """
        found: list[Answer | None] = [None] * len(requests)
        read = {number: _read(request) for number, request in enumerate(requests)}
        sent = {number: each for number, each in read.items() if each is not None}
        outcomes = self._ingest.take(list(sent.values()))
        for number, (outcome,) in zip(sent, outcomes, strict=True):
            found[number] = _answer(outcome)
        return found


def _read(request: Request) -> Sent | None:
    """Return what a request sends, if nothing about it is odd."""
    head, body = request.head, request.body
    names = head.path.split("/")
    if head.method != "PUT" or head.query or len(names) != 4 or names[2] != "streams":
        return None
    headers = head.headers
    if headers.get("HTTP_CONTENT_TYPE", "") not in PLAIN_TYPES or not head.path.isascii():
        return None
    if "HTTP_CONTENT_ENCODING" in headers or not body:
        return None
    offered = Offered(StreamRef(names[1], names[3]), body, MAKING.of(headers.get(ENVIRON)))
    token = read_token(headers.get("HTTP_AUTHORIZATION", ""))
    return Sent(token, (offered,)) if token else None


def _answer(outcome: Outcome) -> Answer | None:
    if isinstance(outcome, Taken):
        headers = [("Content-Type", JSON), ("Content-Length", str(len(outcome.document)))]
        headers += [*warned(outcome.hints).items(), *COMMON_HEADERS.items()]
        caller = outcome.address.caller
        return Answer("202 ACCEPTED", headers, outcome.document, None, caller, ROUTE)
    if isinstance(outcome, OverQuota):
        headers, refused = refusal(429, exceeded=outcome.exceeded)
        return Answer(status_line(429), headers, refused, None, outcome.tenant, ROUTE)
    return None
