"""The answer to a request that is refused before the application works on it."""

from __future__ import annotations

from http import HTTPStatus

import orjson

from api.http.answers import COMMON_HEADERS, JSON
from api.http.problems import content
from servioticy.domain.quotas import Exceeded


def status_line(status: int) -> str:
    """Return the status with its phrase."""
    return f"{status} {HTTPStatus(status).phrase}"


def refusal(
    status: int, said: str = "", exceeded: Exceeded | None = None
) -> tuple[list[tuple[str, str]], bytes]:
    """Return headers and body; of a quota that is used up all that there is to know."""
    body = content(status, said if exceeded is None else exceeded.message)
    headers = dict(COMMON_HEADERS) | {"Content-Type": JSON}
    if status in (429, 503):
        headers["Retry-After"] = "1"
    if exceeded is not None:
        body["quota"] = exceeded.about()
        headers |= exceeded.headers()
    text = orjson.dumps(body)
    return [*headers.items(), ("Content-Length", str(len(text)))], text
