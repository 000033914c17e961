"""Long batches are read in another process, as they would be here, and by callers in turn."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import orjson
import pytest
from waiting import until

from ingest.parsing import batch_reader
from ingest.parsing.batch_reader import HERE_BYTES, BatchReader, Found, reading_process
from servioticy.apart.asking import OtherProcess
from servioticy.domain.batches import forms
from servioticy.domain.batches.forms import FORMS, Way
from servioticy.domain.batches.items import Item, Unreadable
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import Channel, Stream, StreamRef
from servioticy.errors import Unavailable

SECONDS = 60.0
ENDS = (sys.executable, "-c", "")
WAY = Way(1_000_000_000.0, milliseconds=True)
FLOW, HEAT, OTHER = StreamRef("pump", "flow"), StreamRef("pump", "heat"), StreamRef("x", "y")
JSON, LINES, CSV = "application/json", "application/x-ndjson", "text/csv"
SENML = "application/senml+json"


def a_stream(ref: StreamRef = FLOW) -> Stream:
    return Stream(ref, (Channel("v", "number", code="s=>1"),))


def updates(count: int) -> list[dict[str, Any]]:
    """Some of them wrong."""
    return [
        {"channels": {"v": {"current-value": n if n % 7 else "text"}}, "lastUpdate": n}
        for n in range(count)
    ]


def bodies() -> Iterator[tuple[str, bytes]]:
    """A short and a long one of each form, and some that are none."""
    for count in (3, 1_000):
        some = updates(count)
        yield JSON, orjson.dumps(some)
        yield LINES, b"\n".join(map(orjson.dumps, some)) + b"\nnonsense"
        yield CSV, b"lastUpdate,v\n" + b"".join(b"%d,%d\n" % (n, n) for n in range(count * 2))
        packed = [{"n": f"a/b/{'vw'[n % 2]}", "t": 1e9 + n, "v": n} for n in range(count)]
        yield SENML, orjson.dumps([*packed, {"n": "v", "x_": 1}])
    for form in (JSON, CSV, SENML):
        yield form, b"\xff" + b" " * 2 * HERE_BYTES


def came(items: Collection[Item | Unreadable], declared: Mapping[StreamRef, Stream]) -> list[Any]:
    """What becomes of each item, in words."""
    found: list[Any] = []
    for each in items:
        try:
            if isinstance(each, Unreadable):
                raise each.error
            if each.origin not in declared:
                found.append((each.place, each.origin))
                continue
            update = each.read(UpdateReader(declared[each.origin]))
            found.append((each.place, *update))
        except BadDocument as error:
            found.append((each.place, error.reason, error.pointer, error.code))
    return found


@pytest.fixture(scope="module")
def reader() -> Iterator[BatchReader]:
    reader = BatchReader(process=reading_process(SECONDS))
    yield reader
    reader.close()


@pytest.mark.parametrize(("form", "body"), bodies())
def test_it_reads_as_one_would_here(form: str, body: bytes, reader: BatchReader) -> None:
    declared = {FLOW: a_stream()}
    try:
        here: Any = came(list(FORMS[form](body, FLOW, WAY)), declared)
    except BadDocument as error:
        here = (error.reason, error.pointer, error.code)
    try:
        there: Any = came(reader.of_one(form, WAY, body, a_stream()), declared)
    except BadDocument as error:
        there = (error.reason, error.pointer, error.code)

    assert there == here


@pytest.mark.parametrize("count", [3, 1_000])
def test_of_a_batch_that_names_its_streams_those_are_read_that_are_declared(
    count: int, reader: BatchReader
) -> None:
    asked: list[set[StreamRef]] = []
    origins = (FLOW, HEAT, OTHER)
    named = [
        {"serviceObject": o.service_object, "stream": o.stream, "update": update}
        for update, o in zip(updates(count), origins * count, strict=False)
    ]
    body = orjson.dumps(named)

    def declared(wanted: Collection[StreamRef]) -> Mapping[StreamRef, Stream]:
        asked.append(set(wanted))
        return {each: a_stream(each) for each in (FLOW, HEAT)}

    items = reader.of_many(JSON, WAY, body, declared)

    assert asked == ([set(origins)] if len(body) > HERE_BYTES else [])
    both = {each: a_stream(each) for each in (FLOW, HEAT)}
    assert came(items, both) == came(list(FORMS[JSON](body, None, WAY)), both)


def test_nothing_of_a_long_batch_is_read_here(
    reader: BatchReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of ours that reads one holds the lock that everybody's updates need."""
    read: list[str] = []
    patched = {form: lambda *_: read.append("batch") or iter(()) for form in FORMS}
    monkeypatch.setattr(batch_reader, "FORMS", patched)
    monkeypatch.setattr(UpdateReader, "take", lambda *_: read.append("update"))
    body = orjson.dumps([{"n": "v", "t": 1e9 + n, "v": n} for n in range(2_000)])

    items = reader.of_one(SENML, WAY, body, a_stream())
    came_of_them = came(items, {FLOW: a_stream()})

    assert len(body) > HERE_BYTES
    assert len(came_of_them) == 2_000
    assert read == []


def test_a_short_batch_asks_no_process() -> None:
    alone = BatchReader(process=OtherProcess(ENDS, SECONDS, "the process that reads batches"))
    body = orjson.dumps(updates(50))

    assert len(body) <= HERE_BYTES
    assert len(alone.of_one(JSON, WAY, body, a_stream())) == 50


def test_a_process_that_ends_is_told_of_and_nothing_is_taken() -> None:
    alone = BatchReader(process=OtherProcess(ENDS, SECONDS, "the process that reads batches"))

    with pytest.raises(Unavailable, match="the process that reads batches ended"):
        alone.of_one(JSON, WAY, orjson.dumps(updates(5_000)), a_stream())


class Slow(OtherProcess):
    """Answers when it is told to, and notes whose batch it was asked for."""

    def __init__(self) -> None:
        super().__init__(ENDS, SECONDS, "nobody")
        self.asked: list[str] = []
        self.goes_on = threading.Semaphore(0)

    def ask(self, request: bytes) -> bytes:
        body: bytes = pickle.loads(request).body
        self.asked.append(body[:1].decode())
        self.goes_on.acquire()
        return pickle.dumps([Found(0, FLOW, (1, b"{}"))])


def test_of_a_crowd_of_one_tenants_batches_another_waits_for_one() -> None:
    slow, callers = Slow(), threading.local()
    alone = BatchReader(lambda: callers.who, process=slow)

    def read(who: str) -> None:
        callers.who = who
        alone.of_one(LINES, WAY, who.encode() + b" " * HERE_BYTES, a_stream())

    waiting = alone._turns._waiting
    threads = [threading.Thread(target=read, args=(who,)) for who in "aaaaab"]
    for number, each in enumerate(threads):
        each.start()
        until(lambda n=number: sum(map(len, waiting.values())) + len(slow.asked) == n + 1)
    for _ in threads:
        slow.goes_on.release()
    for each in threads:
        each.join(SECONDS)

    assert "".join(slow.asked) == "aabaaa"


def test_each_form_of_a_batch_has_a_body_that_is_tried() -> None:
    same_as_lines = {"application/ndjson", "application/jsonl"}

    assert {form for form, _ in bodies()} | same_as_lines == set(forms.FORMS)
