"""Requests that two servers might read differently reach the application once or not at all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from edge_builders import REQUEST, Serving, Told, everything

CHUNKED = b"Transfer-Encoding: chunked\r\n"
HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: x\r\nAuthorization: hidden\r\n\r\n"
SMUGGLED = {
    "length and chunks": b"Content-Length: 4\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks and length": CHUNKED + b"Content-Length: 4\r\n\r\n0\r\n\r\n",
    "chunks twice": CHUNKED + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a blank before the colon": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a tab before the value": b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "another coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a folded line": b"X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bare line feeds": b"X: y\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 4\r\n\r\n",
    "a list of lengths": b"Content-Length: 0, 4\r\n\r\n",
    "a second token": b"Authorization: b\r\nContent-Length: 0\r\n\r\n",
    "a second host": b"Host: y\r\nContent-Length: 0\r\n\r\n",
    "1000 headers": b"X: y\r\n" * 1_000 + b"\r\n",
    "a header of 64 KiB": b"X: " + b"y" * 65_536 + b"\r\n\r\n",
}


@pytest.mark.parametrize("rest", SMUGGLED.values(), ids=SMUGGLED)
def test_nothing_gets_in_behind_an_ambiguous_head(
    rest: bytes, serve: Callable[..., Serving], app: Told
) -> None:
    """It is refused, and what follows on the connection is not looked at."""
    client = serve().connect()
    client.sendall(REQUEST + rest + HIDDEN)

    answer = everything(client)

    assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 501 "))
    assert answer.count(b"HTTP/1.1 ") == 1
    assert app.inside == []
