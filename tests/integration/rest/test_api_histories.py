"""A whole stream is one answer, however large it is, and is never held in one piece."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from sys import getrefcount

import orjson
import pytest
from api_builders import Caller, Served
from histories import store

from api.resources import histories
from servioticy.domain.model import StreamKey
from servioticy.errors import Unavailable
from servioticy.ports.history import VersionedUpdate
from servioticy.storage.history import PostgresHistory


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_an_answer_in_pages_reads_as_one(
    count: int, served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte by byte what it is in one piece; at the border of a page, too."""
    monkeypatch.setattr(histories, "PAGE_ROWS", 3)
    so = alice.create()
    documents = store(served, so, count)

    answer = alice.ask("GET", f"/{so}/streams/a")
    versions = alice.ask("GET", f"/{so}/streams/a?versions=true").get_json()["data"]

    assert answer.data == b'{"data":[' + b",".join(documents) + b"]}"
    assert ("Content-Length" in answer.headers) is (count <= 3)
    assert versions == [orjson.loads(each) | {"version": 1} for each in documents]


def test_updates_that_come_while_it_is_read_are_not_in_it(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the answer about a busy stream would never end."""
    monkeypatch.setattr(histories, "PAGE_ROWS", 1)
    so = alice.create()
    documents = store(served, so, 3)

    answer = alice.ask("GET", f"/{so}/streams/a", buffered=False)
    pages = answer.iter_encoded()
    first = next(pages)
    store(served, so, 9)

    assert first + b"".join(pages) == b'{"data":[' + b",".join(documents) + b"]}"


def test_an_answer_breaks_off_where_a_page_cannot_be_read(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not end as if it were complete."""
    monkeypatch.setattr(histories, "PAGE_ROWS", 1)
    so = alice.create()
    store(served, so, 3)
    pages = alice.ask("GET", f"/{so}/streams/a", buffered=False).iter_encoded()
    next(pages)
    served.platform.state.postgres_answers = False

    with pytest.raises(Unavailable):
        next(pages)


def test_nobody_holds_a_page_that_was_taken(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand slow readers would hold ten thousand of them."""
    monkeypatch.setattr(histories, "PAGE_ROWS", 1)
    so = alice.create()
    store(served, so, 3)
    found = histories.whole(
        served.platform.ports.history,
        served.platform.stream(so),
        lambda update: update.document,
        {},
    )

    page = next(iter(found.response))

    assert getrefcount(page) == 2  # `page`, and the argument


class Endless(PostgresHistory):
    """A stream of 300 updates of a megabyte, each made when it is read."""

    def newest(self, stream: StreamKey) -> int | None:
        return 299

    def page(
        self, stream: StreamKey, span: tuple[int, int], most_rows: int, most_bytes: int
    ) -> list[VersionedUpdate]:
        return [VersionedUpdate(max(0, span[0]), b'{"x":"%b"}' % (b"y" * 1_000_000), 1)]


def test_a_stream_of_300_megabytes_is_read_within_a_few(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four such reads took the API 4.4 GB."""
    for name in ("newest", "page"):
        monkeypatch.setattr(PostgresHistory, name, vars(Endless)[name])
    so = alice.create()
    pages: Iterator[bytes] = alice.ask("GET", f"/{so}/streams/a", buffered=False).iter_encoded()
    tracemalloc.start()

    size = sum(len(page) for page in pages)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert size > 300_000_000
    assert peak < 10_000_000
