"""What a read takes of the processor is counted for who reads, and each page of its answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from test_edge_quotas import Known

from api.edge.calls import Answer, Application, Request
from api.http.read_after_write import CALLER
from api.http.reading import MAX_TENANTS, Reading
from servioticy.errors import Unavailable
from servioticy.http_heads import Head

STEP = 0.02


def work() -> None:
    """Take so much of this thread's processor time."""
    until = time.thread_time() + STEP
    while time.thread_time() < until:
        pass


class Pages:
    def __init__(self) -> None:
        self.closed = False
        self._left = 2

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        if not self._left:
            raise StopIteration
        self._left -= 1
        work()
        return b"page"

    def close(self) -> None:
        self.closed = True


def application(known: Known, caller: int | None, answer: Iterable[bytes]) -> Application:
    def app(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if caller is not None:
            environ[CALLER] = caller
        work()
        length = [("Content-Length", "1")] if isinstance(answer, list) else []
        start("200 OK", length)
        return answer

    return Application(app, "localhost", 80, quotas=known)


def asked(method: str, path: str = "/o/streams/s") -> Request:
    return Request(
        Head(method, path, "", {}, 0, chunked=False, keeps_alive=True, http_1_0=False), b"", "::1"
    )


def test_a_read_counts_for_who_reads() -> None:
    known = Known()
    application(known, 7, [b"x"]).call(asked("GET"))

    assert known.read.keys() == {7}
    assert known.read[7] >= STEP


def test_so_does_each_page_of_its_answer_and_they_are_let_go_of() -> None:
    known, pages = Known(), Pages()
    answer = application(known, 7, pages).call(asked("GET"))
    assert isinstance(answer, Answer)
    assert answer.pages is not None
    before = known.read[7]

    assert list(answer.pages) == [b"page"] * 2
    answer.pages.close()  # type: ignore[attr-defined]

    assert known.read[7] - before >= 2 * STEP
    assert pages.closed


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_what_is_no_read_does_not_count(method: str) -> None:
    known = Known()
    application(known, 7, [b"x"]).call(asked(method))

    assert known.read == {}


def test_a_search_is_a_read_though_it_is_posted() -> None:
    known = Known()
    application(known, 7, [b"x"]).call(asked("POST", "/o/streams/s/search"))

    assert known.read.keys() == {7}


def test_who_is_not_known_has_no_account() -> None:
    known = Known()
    application(known, None, [b"x"]).call(asked("GET"))

    assert known.read == {}


class Stored:
    def __init__(self) -> None:
        self.rows_of: list[tuple[str, dict[int, int]]] = []
        self.is_away = False

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def session(self) -> AbstractContextManager[None]:
        return nullcontext()

    def rows(self, name: str, /, **values: Any) -> list[Any]:
        if self.is_away:
            raise Unavailable("away")
        told = dict(zip(values["tenants"], values["read_us"], strict=True))
        self.rows_of.append((name, told))
        return []


def test_it_is_stored_once_and_kept_while_the_store_is_away() -> None:
    stored = Stored()
    reading = Reading(stored)  # type: ignore[arg-type]
    reading.settle()
    assert stored.rows_of == [], "nothing was read, nothing is written"
    reading.note(1, 0.5)
    stored.is_away = True
    reading.settle()
    reading.note(1, 0.25)
    reading.note(2, 1.0)
    assert reading.seconds(1) == 0.75

    stored.is_away = False
    reading.settle()
    reading.settle()

    counted = {1: 750_000, 2: 1_000_000}
    assert stored.rows_of == [("read", counted), ("read_in_all", counted)]
    assert reading.seconds(1) == 0


def test_of_how_many_tenants_it_is_counted_is_bounded() -> None:
    reading = Reading(Stored())  # type: ignore[arg-type]
    for tenant in range(MAX_TENANTS + 1):
        reading.note(tenant, 1.0)
    reading.note(0, 1.0)

    assert reading.seconds(0) == 2.0
    assert reading.seconds(MAX_TENANTS - 1) == 1.0
    assert reading.seconds(MAX_TENANTS) == 0
