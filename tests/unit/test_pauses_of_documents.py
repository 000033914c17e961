"""Between two pauses of whoever understands a document lies only so much, however it is made.

Nothing is timed: the meter tells what was counted, and what it does not count is counted here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from benchmarks.worst_documents import KINDS, Kind
from sandbox.text import argument_names
from servioticy.domain.documents import BadDocument, Documents
from servioticy.domain.documents.limits import (
    MAX_ALIASES,
    MAX_MEMBERS,
    MAX_STREAMS,
    MAX_SUBSCRIPTIONS,
    STEP,
    Limit,
    Meter,
)
from servioticy.domain.documents.service_objects import (
    ACTIONS,
    COUNTED,
    MEMBERS,
    reading_service_object,
)
from servioticy.domain.documents.stored import copying, declaring, reading, weighing
from servioticy.domain.pauses import PACES, Paused, finished
from servioticy.domain.references import parsed_paths

LARGEST = 1024 * 1024
MOST = 10 * STEP
"""Of one step: what makes it due for a pause, and the largest single thing behind that, which is
one text, its aliases replaced."""
AS_WRITTEN = (MAX_STREAMS, MAX_ALIASES, MAX_MEMBERS, MAX_SUBSCRIPTIONS)
"""Counted at once, of what is read one by one."""


class Steps(Meter):
    """Notes what was counted since the last pause."""

    def __init__(self) -> None:
        super().__init__()
        self.step = 0.0

    def count(self, limit: Limit, amount: int, *part: Any) -> None:
        super().count(limit, amount, *part)
        if limit not in AS_WRITTEN:  # and what is too much is not read
            self.step += amount / limit.most


def shares(document: Any) -> Iterator[float]:
    """Yield what each step of reading the document has counted, until it is refused if it is."""
    meter = Steps()
    parsed_paths.clear()
    with contextlib.suppress(BadDocument):
        for _pause in reading_service_object(document, "so", argument_names, meter):
            yield meter.step
            meter.step = 0.0
    yield meter.step


def pauses(work: Paused[Any]) -> int:
    return sum(1 for _ in work)


def of(document: Any) -> int:
    """How many pauses reading the document has."""
    return pauses(reading_service_object(document, "so", argument_names))


@pytest.mark.parametrize("size", [LARGEST // 16, LARGEST])
@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.__name__)
def test_no_step_of_the_worst_documents_is_larger_than_another(kind: Kind, size: int) -> None:
    """The largest took 255 ms in one step, and many streams of few channels were the only ones
    that had pauses at all."""
    assert max(shares(kind(size))) <= MOST


def channels(count: int) -> Any:
    return {"streams": {"s": {"channels": {f"c{n}": {"type": "number"} for n in range(count)}}}}


def programs(count: int) -> Any:
    codes = {f"c{n}": {"type": "number", "current-value": f"a=>{n}"} for n in range(count)}
    return {"streams": {"a": channels(1)["streams"]["s"], "s": {"channels": codes}}}


def references(count: int) -> Any:
    text = "+".join(f"{{$a.c{n}}}" for n in range(count))
    code = {"c": {"type": "number", "current-value": text}}
    return {"streams": {"a": channels(1)["streams"]["s"], "s": {"channels": code}}}


def groups(count: int) -> Any:
    found = {f"g{n}": {"soIds": [], "stream": "s"} for n in range(count)}
    return {"streams": {}, "groups": found}


def members(count: int) -> Any:
    return {"streams": {}, "groups": {"g": {"soIds": ["x"] * count, "stream": "s"}}}


def actions(count: int) -> Any:
    return {"streams": {}, "actions": [{"name": f"a{n}"} for n in range(count)]}


def streams(count: int) -> Any:
    return {"streams": {f"s{n}": channels(1)["streams"]["s"] for n in range(count)}}


@pytest.mark.parametrize(
    ("made", "few", "each"),
    [
        (channels, 100, 20_000 * STEP),
        (programs, 100, 20_000 * STEP),
        (references, 100, 20_000 * STEP),
        (streams, 100, 1),
        (groups, 1000, 50_000 * STEP),
        (members, 5000, MEMBERS),
        (actions, 2000, ACTIONS),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_the_more_a_document_has_the_more_pauses_there_are(
    made: Callable[[int], Any], few: int, each: float
) -> None:
    """So many lie between two of them at most, whatever there is of all else."""
    many = 10 * few

    assert of(made(many)) - of(made(few)) >= (many - few) / (each + COUNTED) - 1


def test_what_follows_reading_has_pauses_too() -> None:
    """What a definition takes of memory, a copy for another device, and one that is no longer
    understood."""
    document = orjson.dumps(programs(900) | {"streams": many_streams(20)})
    known = finished(reading_service_object(orjson.loads(document), "so", argument_names))
    few = 20 * 900 / (PACES + 900) - 1

    assert pauses(weighing(known)) >= few
    assert pauses(declaring(orjson.loads(document), "so")) >= few
    assert pauses(copying(finished(read_by_many()), "other")) >= 1


def many_streams(count: int) -> Any:
    return {f"s{n}": channels(900)["streams"]["s"] for n in range(count)}


def read_by_many() -> Paused[Any]:
    """Each of a hundred streams reads all of them."""
    names = ",".join(f"s{n}" for n in range(100))
    code = {"c": {"type": "number", "current-value": f"function({names}){{}}"}}
    document = {"version": "0.2.0", "streams": {f"s{n}": {"channels": code} for n in range(100)}}
    return reading_service_object(document, "so", argument_names)


def test_a_document_that_is_stored_is_understood_with_the_pauses_of_its_reading() -> None:
    """Loading it, and telling which others are like it, are steps of their own."""
    document = programs(1000)
    documents = Documents(reading(argument_names), 10**8)

    assert pauses(documents.understanding("so", 1, orjson.dumps(document))) >= of(document) + 2
