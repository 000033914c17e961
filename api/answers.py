"""Answers: JSON on one line, keys in the order they were written, as shell clients need it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from flask import Response

JSON = "application/json"


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The value as JSON."""
    return stored(orjson.dumps(value), status, headers)


def stored(
    document: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A document that is JSON already, untouched."""
    return Response(document, status, headers, content_type=JSON)


def data(documents: Iterable[bytes], headers: Mapping[str, str] | None = None) -> Response:
    """Sensor Updates under `data`, or 204 where there are none."""
    joined = b",".join(documents)
    return stored(b'{"data":[%b]}' % joined, 200, headers) if joined else nothing(headers)


def nothing(headers: Mapping[str, str] | None = None) -> Response:
    """Done, and nothing to tell."""
    response = Response(status=204, headers=headers)
    del response.headers["Content-Type"]
    return response
