"""A list as one answer that is made while it is sent, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from flask import Response

from api.http.answers import JSON, stored


def paged(name: str, pages: Iterator[list[bytes]]) -> Response:
    """`{"NAME":[..]}` of the JSON values of all pages, none of which is empty.

    What fits on the first page has a Content-Length. More is sent as it is made; where that
    fails the answer breaks off, and never looks complete.
    """
    first = next(pages, [])
    second = next(pages, None)
    if second is None:
        return stored(b'{"%b":[%b]}' % (name.encode(), b",".join(first)))
    parts = _parts(name, chain((first, second), pages))
    return Response(parts, 200, content_type=JSON)


def _parts(name: str, pages: Iterator[list[bytes]]) -> Iterator[bytes]:
    before = b'{"%b":[' % name.encode()
    for page in pages:
        yield before + b",".join(page)
        before = b","
    yield b"]}"
