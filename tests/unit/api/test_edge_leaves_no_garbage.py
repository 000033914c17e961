"""What a connection to the API was made of goes with it, as that of delivery does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from memory import MemoryPlatform
from support.edge_builders import QUICK, Serving, Told
from support.garbage_left import ask, left_of

CLOSES = b"Host: x\r\nConnection: close\r\n"
SENT = {
    "an answer": (b"GET /hello HTTP/1.1\r\n" + CLOSES + b"\r\n", True),
    "pages": (b"GET /pages HTTP/1.1\r\n" + CLOSES + b"\r\n", True),
    "an update": (
        b"PUT /o/streams/s HTTP/1.1\r\n" + CLOSES + b"Content-Length: 2\r\n\r\n{}",
        True,
    ),
    "half a line": (b"GET /hel", False),
    "nonsense": (b"zz zz zz zz\r\n\r\n", True),
    "nothing": (b"", False),
}


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    made = Serving(QUICK, Told(), MemoryPlatform())
    yield made
    made.stop()


@pytest.mark.parametrize("name", SENT)
def test_the_edge_holds_nothing_of_who_has_gone(serving: Serving, name: str) -> None:
    sent, waits = SENT[name]
    assert left_of(lambda: ask(serving.port, sent, waits=waits)) <= 0
