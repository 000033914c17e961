"""All updates of a stream as one answer that is made while it is sent, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from flask import Response, request

from api.http.answers import JSON, nothing, stored
from servioticy.domain.model import StreamKey, Timestamp
from servioticy.ports.history import History, VersionedUpdate

PAGE_ROWS = 1_000
PAGE_BYTES = 262_144
"""A page ends with the update that reaches it."""
FIRST = -(2**63)

Show = Callable[[VersionedUpdate], bytes]


def shown() -> Show:
    """Return how updates are shown: with `?versions=true`, with which version made each."""
    return _with_version if request.args.get("versions") == "true" else _document


def whole(history: History, stream: StreamKey, show: Show, headers: Mapping[str, str]) -> Response:
    """`{"data":[..]}` of every update stored now, oldest first, or 204.

    What fits on a page has a Content-Length. More is sent as it is read; where a page
    cannot be read any more the answer breaks off, and never looks complete.
    """
    newest = history.newest(stream)
    if newest is None:
        return nothing(headers)
    rows = _page(history, stream, FIRST, newest)
    if not rows:
        return nothing(headers)
    if rows[-1].timestamp >= newest:
        return stored(b'{"data":[%b]}' % b",".join(map(show, rows)), 200, headers)
    pages = _pages(history, stream, show, rows, newest)
    return Response(pages, 200, headers, content_type=JSON)


def _pages(
    history: History, stream: StreamKey, show: Show, rows: list[VersionedUpdate], newest: Timestamp
) -> Iterator[bytes]:
    """Yield the whole answer in pages.

    What is stored later, with larger timestamps, is not in it.
    """
    before = b'{"data":['
    while rows:
        last = rows[-1].timestamp
        content = [before + b",".join(map(show, rows))]
        rows = []  # nobody holds a page here while it is sent
        yield content.pop()
        before = b","
        if last >= newest:
            break
        rows = _page(history, stream, last + 1, newest)
    yield b"]}"


def _document(update: VersionedUpdate) -> bytes:
    return update.document


def _with_version(update: VersionedUpdate) -> bytes:
    """Return the update as stored, and which version made it."""
    return b'%b,"version":%d}' % (update.document[:-1], update.version)


def _page(
    history: History, stream: StreamKey, first: Timestamp, last: Timestamp
) -> list[VersionedUpdate]:
    return history.page(stream, (first, last), PAGE_ROWS, PAGE_BYTES)
