"""Windows: what comes of them follows from the log alone, in its order."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_oracle import value_of
from memory import MemoryPlatform
from memory.partition_store import MemoryPartitionStore
from new_service_objects import new_service_object
from put_off_runs import Runs, Whims
from python_evaluator import PythonEvaluator
from serial_order import LAW
from windows_oracle import Interpreter, Shape, folded, followed_value, holds

from pipeline.state import recalling
from servioticy.domain.evaluators.every import every
from servioticy.domain.records import TickRecord, UpdateRecord
from servioticy.ports.past import ToldPast

BASE = 1_700_000_000
"""The time at which logs begin, in seconds."""

CUTS = {
    "tumbling": Shape("tumbling", 7),
    "tumbling with a delay": Shape("tumbling", 5, delay=3),
    "hopping": Shape("hopping", 6, 2, idle=15),
    "hopping across": Shape("hopping", 5, 3),
    "sliding": Shape("sliding", 5, delay=2),
    "sessions": Shape("session", gap=3, most=12),
    "count": Shape("count", 4, 2),
    "count apart": Shape("count", 3),
    "global": Shape("global"),
    "silence": Shape("silence", gap=9),
    "by arrival": Shape("tumbling", 6, arrival=True),
    "tumbling, revised": Shape("tumbling", 4, lateness=6, delay=1),
    "tumbling, with each update": Shape("tumbling", 6, early=0),
    "hopping, revised, early": Shape("hopping", 6, 2, lateness=3, early=3),
    "sessions, early": Shape("session", gap=3, most=12, early=2),
    "tumbling, folded": Shape("tumbling", 6, delay=1, fold=True),
    "hopping, folded, revised": Shape("hopping", 6, 2, lateness=5, fold=True),
    "hopping, folded, early": Shape("hopping", 5, 3, early=0, fold=True),
    "count, folded": Shape("count", 5, 2, fold=True),
    "global, folded": Shape("global", fold=True),
    "tumbling, on a condition": Shape("tumbling", 6, early=0, when=True),
    "hopping, on a condition, revised": Shape("hopping", 6, 2, lateness=5, early=0, when=True),
    "hopping, on a condition, folded": Shape("hopping", 5, 3, early=0, fold=True, when=True),
    "tumbling, early, taken back": Shape("tumbling", 6, early=0, lateness=5, revisions="retract"),
    "hopping, taken back": Shape("hopping", 6, 2, lateness=5, early=2, revisions="retract"),
    "hopping, on a condition, taken back": Shape(
        "hopping", 5, 3, lateness=4, early=0, when=True, revisions="retract"
    ),
    "tumbling, folded, taken back": Shape(
        "tumbling", 4, lateness=6, fold=True, revisions="retract"
    ),
    "sessions, early, taken back": Shape("session", gap=3, most=12, early=0, revisions="retract"),
    "tumbling, early, only what is new": Shape(
        "tumbling", 6, early=0, lateness=5, revisions="discard"
    ),
    "tumbling, at times, only what is new": Shape(
        "tumbling", 6, lateness=5, early=3, revisions="discard"
    ),
    "tumbling, late, only what is new": Shape("tumbling", 6, lateness=5, revisions="discard"),
    "sessions, only what is new": Shape("session", gap=3, most=12, early=2, revisions="discard"),
    "sessions, revised": Shape("session", gap=3, most=12, lateness=8),
    "sessions, revised, early": Shape("session", gap=3, most=12, lateness=6, early=2, delay=1),
    "sessions, revised, taken back": Shape(
        "session", gap=3, most=9, lateness=8, early=0, revisions="retract"
    ),
    "sessions, on a condition, revised": Shape(
        "session", gap=3, most=12, lateness=6, early=0, when=True
    ),
    "sessions, on a condition": Shape("session", gap=3, most=12, early=0, when=True),
}
GRAPHS: dict[str, tuple[dict[str, tuple[str, ...]], set[str]]] = {
    "one": ({"c0": ("d0",)}, {"c0"}),
    "two inputs": ({"c0": ("d0", "d1")}, {"c0"}),
    "two of one": ({"c0": ("d0",), "c1": ("d0", "d1")}, {"c0", "c1"}),
    "windows of windows": ({"c0": ("d0",), "c1": ("c0", "d1")}, {"c0", "c1"}),
    "a chain": ({"c0": ("d0",), "c1": ("c0", "d1"), "c2": ("c1",)}, {"c0", "c2"}),
    "a circle": ({"c0": ("d0", "c1"), "c1": ("c0",)}, {"c0"}),
}
FOLLOW: dict[str, tuple[dict[str, tuple[str, ...]], set[str], set[str]]] = {
    "one": ({"c0": ("d0",), "f1": ("c0",)}, {"c0"}, {"f1"}),
    "beside another input": ({"c0": ("d0",), "f1": ("c0", "d1")}, {"c0"}, {"f1"}),
    "a chain": (
        {"c0": ("d0",), "f1": ("c0", "d1"), "f2": ("d0", "f1"), "c3": ("f2",)},
        {"c0"},
        {"f1", "f2"},
    ),
    "two windows": (
        {"c0": ("d0",), "c1": ("d1", "d0"), "f2": ("c0", "c1")},
        {"c0", "c1"},
        {"f2"},
    ),
    "windows of what follows": (
        {"c0": ("d0",), "f1": ("c0", "d1"), "c2": ("f1",)},
        {"c0", "c2"},
        {"f1"},
    ),
    "a circle": ({"c0": ("d0", "f1"), "f1": ("c0", "d1")}, {"c0"}, {"f1"}),
}
"""With those that follow revisions."""
REVISED = [name for name, each in CUTS.items() if each.lateness]
FOLLOWS_OVER_A_BORDER = {
    "version": "0.2.0",
    "groups": {"g": {"soIds": ["so"], "stream": "c0"}},
    "streams": {
        "f0": {
            "follow": True,
            "channels": {"v": {"type": "number", "current-value": "function(g){return 1}"}},
        },
        "copy": {
            "channels": {"v": {"type": "number", "current-value": "function(g){return 1}"}},
        },
    },
}


def key_of(shape: Shape) -> dict[str, Any]:
    """The key of a stream that says so."""
    is_silence = shape.kind == "silence"
    return {"silent": f"{shape.gap}s"} if is_silence else {"window": window_of(shape)}


def cuts_for(graph: str) -> list[str]:
    """The windows that streams of this graph may have.

    Behind those by arrival, whose results have times in ms, nothing has one unit; and one that
    comes out with each update goes round a circle as far as it may.
    """
    reads, windowed = GRAPHS[graph]
    leads_on = any(name in read for read in reads.values() for name in windowed)
    return sorted(
        name
        for name, each in CUTS.items()
        if not (leads_on and each.arrival) and not (graph == "a circle" and each.kind == "global")
    )


def window_of(shape: Shape) -> dict[str, Any]:
    """The same as a document has it."""
    found: dict[str, Any] = {"type": shape.kind}
    if shape.kind == "count":
        return found | {"size": shape.size, "every": shape.every or shape.size}
    seconds = {"size": shape.size, "every": shape.every, "gap": shape.gap}
    if shape.kind == "session":
        seconds["max"] = shape.most
    if shape.kind != "global" and not shape.arrival:
        seconds |= {"delay": shape.delay, "idle": shape.idle, "lateness": shape.lateness}
    found |= {name: f"{number}s" for name, number in seconds.items() if number}
    if shape.early is not None:
        found["emit"] = {"every": f"{shape.early}s"} if shape.early else "updates"
    if shape.revisions != "accumulate":
        found["revisions"] = shape.revisions
    if shape.when:
        found["emit"] = {"when": "true"}
    return found | {"time": "arrival"} if shape.arrival else found


def platform_with(
    reads: dict[str, tuple[str, ...]], shapes: dict[str, Shape], follow: Collection[str] = ()
) -> MemoryPlatform:
    platform = MemoryPlatform()
    streams: dict[str, Any] = {
        name: {"channels": {"v": {"type": "number"}}} for name in ("d0", "d1")
    }
    for name, read in reads.items():
        code = f"function({', '.join(read)}){{return 1}}"
        streams[name] = {"channels": {"v": {"type": "number", "current-value": code}}}
        if name in follow:
            streams[name]["follow"] = True
        if name in shapes:
            streams[name] |= key_of(shapes[name])
            if shapes[name].fold:
                streams[name]["fold"] = f"function(state, {', '.join(read)}){{return 1}}"
    document = {"version": "0.2.0", "streams": streams, "public": "true"}
    for id_ in ("so", "other"):
        tenant = platform.tenants.tenant_of(platform.tenants.create_tenant(id_))
        platform.changes.create(new_service_object(tenant, id_, document))
    return platform


def compute(trigger: Any, documents: list[bytes | None]) -> int:
    value = value_from(trigger, documents)
    return holds(value) if trigger.is_condition else value


def value_from(trigger: Any, documents: list[bytes | None]) -> int:
    if "/f" in trigger.name:
        return followed_value([each and value_of(each) for each in brought(documents)])
    document = json.loads(documents[trigger.argument] or b"")
    if "windows" not in document:
        return value_of(json.dumps(document).encode()) + 1
    if "own" in (document["windows"][0] or {}):
        state, *given = [each and each["value"] for each in document["windows"]]
        return folded(state, [value_of(json.dumps(each).encode()) for each in given if each])
    if document["windows"][-1] is not None and "value" in document["windows"][-1]:
        *windows, state = document["windows"]
        return sum(each["count"] for each in windows) * 10**6 + int(state["value"])
    (silence, *_) = [each for each in document["windows"] if each is not None]
    if "silent" in silence:
        return int(silence["count"])
    found = [each for each in document["windows"] if each["count"]]
    whole = sum(each["count"] * 10**6 + int(each["sum"]["v"]) for each in found)
    return whole if len(found) > 1 else whole + int(found[0]["last"]["v"])


def brought(documents: list[bytes | None]) -> list[bytes | None]:
    """All inputs, where a revision brings them, too."""
    whole = json.loads(documents[0] or b"{}")
    if "argument" not in whole:
        return documents
    return [each and json.dumps(each["value"]).encode() for each in whole["windows"]]


def put(
    platform: MemoryPlatform, id_: str, stream: str, timestamp: int, value: int, at: int
) -> None:
    body = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
    update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
    platform.log.append(0, UpdateRecord(id_, stream, timestamp, update, at=at))


def revision_of(update: msgspec.Raw) -> str:
    said = json.loads(bytes(update))
    if "retracted" in said:
        return "retracted early" if "early" in said else "retracted"
    return "early" if "early" in said else "revised" if "revision" in said else ""


def assert_as_interpreted(
    platform: MemoryPlatform,
    id_: str,
    reads: Any,
    shapes: dict[str, Shape],
    follow: Collection[str] = (),
    *,
    all_: bool,
) -> None:
    state, plain = platform.state, Interpreter(reads, shapes, follow)
    for _offset, record in platform.log.records(0):
        if isinstance(record, UpdateRecord | TickRecord) and record.service_object == id_:
            plain.take(record)
    names = {number: ref for ref, number in state.streams.items()}
    emitted = [
        (each.stream, each.timestamp, value_of(bytes(each.update)), revision_of(each.update))
        for each in state.emitted
        if each.service_object == id_
    ]
    assert has(platform, id_) == plain.stored
    if all_:
        assert emitted == plain.emitted
    else:  # what is early is kept nowhere, so it may be lost
        assert set(emitted) <= set(plain.emitted)
        assert {
            each for each in plain.emitted if not each[3].startswith(("early", "retracted"))
        } <= set(emitted)
    verdicts = {
        (names[stream][1], kind): times
        for (stream, kind), (times, _last) in state.verdicts.items()
        if names[stream][0] == id_ and kind != "collected"
    }
    expected = {
        key: times
        for key, times in plain.verdicts.items()
        if key[1] not in ("collected", "ticked")
    }
    assert verdicts == expected


@pytest.mark.parametrize("graph", GRAPHS)
@LAW
@given(data=st.data())
def test_what_windows_make_follows_from_the_log(data, graph) -> None:
    """However it is cut and put off, and whoever dies."""
    reads, windowed = GRAPHS[graph]
    cuts = cuts_for(graph)
    shapes = {name: CUTS[data.draw(st.sampled_from(cuts))] for name in sorted(windowed)}
    takes_a_log(data, reads, shapes)


@LAW
@given(data=st.data(), graph=st.sampled_from(sorted(FOLLOW)))
def test_what_follows_revisions_follows_from_the_log(data, graph) -> None:
    """For the time of each, other inputs as history has them then."""
    reads, windowed, follow = FOLLOW[graph]
    some = [name for name in REVISED if graph != "a circle" or CUTS[name].early is None]
    shapes = {name: CUTS[data.draw(st.sampled_from(some))] for name in sorted(windowed)}
    takes_a_log(data, reads, shapes, follow)


@LAW
@given(data=st.data(), graph=st.sampled_from(["one", "two inputs", "a chain"]))
def test_who_follows_over_a_border_has_what_is_there_in_the_end(data, graph) -> None:
    """Whoever dies, and whatever is put off: also what is told again, and what is taken back."""
    reads, windowed = GRAPHS[graph]
    shapes = {name: CUTS[data.draw(st.sampled_from(REVISED))] for name in sorted(windowed)}
    platform = takes_a_log(data, reads, shapes, is_followed=True)

    results = {at: value for (stream, at), value in has(platform, "so").items() if stream == "c0"}
    finals = {
        each.timestamp: value_of(bytes(each.update))
        for each in platform.state.emitted
        if (each.service_object, each.stream) == ("so", "c0") and not revision_of(each.update)
    }
    assert has(platform, "follows") == {
        ("f0", at): followed_value([value]) for at, value in results.items()
    } | {("copy", at): value + 1 for at, value in finals.items()}


def has(platform: MemoryPlatform, id_: str) -> dict[tuple[str, int], int]:
    """What is stored of a Service Object, by stream and timestamp."""
    names = {number: ref for ref, number in platform.state.streams.items()}
    return {
        (names[row.stream_id][1], row.timestamp): value_of(row.document)
        for _partition, row in platform.state.updates.values()
        if names[row.stream_id][0] == id_
    }


def takes_a_log(
    data: Any,
    reads: Any,
    shapes: dict[str, Shape],
    follow: Collection[str] = (),
    *,
    is_followed: bool = False,
) -> MemoryPlatform:
    """`is_followed`: another tenant's Service Object follows `so/c0`."""
    draw = data.draw
    platform = platform_with(reads, shapes, follow)
    if is_followed:
        tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("follows"))
        platform.changes.create(new_service_object(tenant, "follows", FOLLOWS_OVER_A_BORDER))
    deaths = draw(
        st.dictionaries(st.integers(1, 12), st.sampled_from(["before", "after"]), max_size=2)
    )
    died = bool(deaths)
    evaluators = every(PythonEvaluator(compute))
    now = [-1.0]
    runs = Runs(
        platform,
        evaluators,
        Whims(draw(st.lists(st.sets(st.integers(1, 2)), max_size=30))),
        deaths,
        draw(st.sampled_from([1, 3, 1000])),
        now=lambda: now[0],
    )
    runs.take(0, 0)
    _finish(runs)
    clock = BASE * 1000
    puts = st.tuples(
        st.just("put"), st.sampled_from(["d0", "d1"]), st.integers(-6, 3), st.integers(0, 99)
    )
    passing = st.tuples(st.just("pass"), st.just(""), st.integers(1, 70), st.just(0))
    for kind, stream, number, value in draw(
        st.lists(st.one_of(puts, puts, puts, passing), max_size=40)
    ):
        clock += draw(st.sampled_from([0, 400, 1000, 2000]))
        if kind == "pass":
            clock += number * 1000
            _taken_in(runs)
            now[0] = clock / 1000
            runs.rest()
        else:
            for id_ in ("so", "other"):
                put(platform, id_, stream, clock // 1000 + number, value, clock)
        if draw(st.integers(0, 3)) == 0:
            _taken_in(runs)
    _finish(runs)
    for id_ in ("so", "other"):
        assert_as_interpreted(platform, id_, reads, shapes, follow, all_=not died)
    return platform


def _finish(runs: Runs) -> None:
    """What waited may have set times that have come by now, or have crossed a border."""
    while True:
        _taken_in(runs)
        runs.finish()
        if runs.platform.state.progress[0].next_offset == len(runs.platform.state.log[0]):
            return


def _taken_in(runs: Runs) -> None:
    platform = runs.platform
    while platform.state.progress[0].next_offset < len(platform.state.log[0]):
        runs.take(platform.state.progress[0].next_offset, len(platform.state.log[0]))


@pytest.mark.parametrize("room", [400, 600, 10_000])
def test_what_history_has_is_read_for_so_many_trees_as_there_is_room(room, monkeypatch) -> None:
    """Beyond that the piece is cut: the outcome is the same."""
    monkeypatch.setattr(recalling, "MAX_TOGETHER", room)
    reads, shapes = (
        {"c0": ("d0",), "c1": ("d0",)},
        dict.fromkeys(("c0", "c1"), CUTS["tumbling"]),
    )
    platform = platform_with(reads, shapes)
    told: list[ToldPast] = []
    asked = MemoryPartitionStore.past

    def past(self: Any, wanted: Any, room: int) -> ToldPast:
        told.append(asked(self, wanted, room))
        return told[-1]

    monkeypatch.setattr(MemoryPartitionStore, "past", past)
    runs = Runs(platform, every(PythonEvaluator(compute)), Whims([]), {}, 1000, now=lambda: -1.0)
    runs.take(0, 0)
    clock = BASE * 1000
    for values in ((1, 2, 3, 4, 5), (10, 20, 30, 40)):
        for nth, value in enumerate(values):
            put(platform, "so", "d0", BASE + 1 + nth, value, clock)
        _taken_in(runs)
    put(platform, "so", "d0", BASE + 100, 0, clock)
    _taken_in(runs)
    runs.finish()

    assert_as_interpreted(platform, "so", reads, shapes, all_=True)
    assert room < 10_000 or all(each.is_all for each in told)
    sizes = [
        sum(len(one.document) for some in each.answers for one in some or ()) for each in told
    ]
    assert 0 < max(sizes) <= room
