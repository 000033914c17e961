"""Answers: JSON on one line, keys in the order they were written, as shell clients need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import orjson
from flask import Response

from api.http.read_after_write import HEADER

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

JSON = "application/json"
COMMON_HEADERS = {
    "Server": "api.servIoTicy",
    "X-Content-Type-Options": "nosniff",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST, OPTIONS, DELETE, PUT, HEAD, PATCH",
    "Access-Control-Allow-Headers": (
        "X-Requested-With, Content-Type, Accept, Origin, Authorization, If-Match, If-None-Match, "
        "Idempotency-Key, traceparent"
    ),
    "Access-Control-Max-Age": "86400",
    "Access-Control-Expose-Headers": (
        f"Location, Retry-After, RateLimit, RateLimit-Policy, ETag, Link, Allow, Warning, {HEADER}"
    ),
}
"""What every answer carries, unless it says otherwise itself."""


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return the value as JSON."""
    return stored(orjson.dumps(value), status, headers)


def stored(
    document: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a document that is JSON already, untouched."""
    return Response(document, status, headers, content_type=JSON)


def data(documents: Iterable[bytes], headers: Mapping[str, str] | None = None) -> Response:
    """Return Sensor Updates under `data`, or 204 where there are none."""
    joined = b",".join(documents)
    return stored(b'{"data":[%b]}' % joined, 200, headers) if joined else nothing(headers)


def nothing(headers: Mapping[str, str] | None = None) -> Response:
    """Done, and nothing to tell."""
    response = Response(status=204, headers=headers)
    del response.headers["Content-Type"]
    return response


def with_common_headers(app: WSGIApplication) -> WSGIApplication:
    """Return the application, with these headers on every answer it makes."""
    common = list(COMMON_HEADERS.items())
    rest = [(name, value) for name, value in common if name != "Server"]

    def wrapped(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            names_itself = any(name == "Server" for name, _ in headers)
            return start_response(status, [*headers, *(rest if names_itself else common)], *error)

        return app(environ, start)

    return wrapped
