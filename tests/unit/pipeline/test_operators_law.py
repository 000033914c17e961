"""Operators: what they keep and when they are woken follows from the log alone, in its order."""

from __future__ import annotations

from typing import Any

import pytest
from counting import SILENT_MS, Counted, Counting, Interpreter, entries_of
from hypothesis import given
from hypothesis import strategies as st
from log_oracle import value_of
from memory import MemoryPlatform
from memory.output import MemoryOutput
from new_service_objects import new_service_object
from put_off_runs import Runs, Whims, append
from python_evaluator import PythonEvaluator
from serial_order import LAW

from servioticy.domain.evaluators.operators import Operators
from servioticy.domain.records import TickRecord, UpdateRecord
from servioticy.ports.kept_entries import KeptValue

SHAPES: dict[str, dict[str, tuple[str, ...]]] = {
    "one": {"c0": ("d0",)},
    "two inputs": {"c0": ("d0", "d1")},
    "a chain over JavaScript": {"c0": ("d0",), "c1": ("c0",), "c2": ("c1", "d0")},
    "a chain of operators": {"c0": ("d0", "d1"), "c2": ("c0",)},
    "a circle with JavaScript": {"c0": ("d0", "c1"), "c1": ("c0",)},
}
COUNTED = {"c0", "c2"}


class Platform(MemoryPlatform):
    """Says who computes what."""

    def partition_store(self, argument_names: Any) -> Any:
        counted = {("so", each) for each in COUNTED} | {("other", each) for each in COUNTED}
        return Counted(super().partition_store(argument_names), counted)


def platform_with(shape: dict[str, tuple[str, ...]]) -> Platform:
    """Two tenants with an object of this shape each: put off by turns, and alike."""
    platform = Platform()
    streams: dict[str, Any] = {
        name: {"channels": {"v": {"type": "number"}}} for name in ("d0", "d1")
    }
    for name, reads in shape.items():
        code = f"function({', '.join(reads)}){{return 1}}"
        streams[name] = {"channels": {"v": {"type": "number", "current-value": code}}}
    document = {"version": "0.2.0", "streams": streams, "public": "true"}
    for id_ in ("so", "other"):
        tenant = platform.tenants.tenant_of(platform.tenants.create_tenant(id_))
        platform.changes.create(new_service_object(tenant, id_, document))
    return platform


def plus_one(trigger: Any, documents: list[bytes | None]) -> int:
    document = documents[trigger.argument]
    assert document is not None
    return value_of(document) + 1


def interpreted(platform: Platform, id_: str, shape: dict[str, tuple[str, ...]]) -> Interpreter:
    plain = Interpreter(shape, COUNTED)
    for _offset, record in platform.log.records(0):
        if isinstance(record, UpdateRecord | TickRecord) and record.service_object == id_:
            plain.take(record)
    return plain


def assert_as_interpreted(
    platform: Platform, id_: str, shape: dict[str, Any], *, all_: bool
) -> None:
    state, plain = platform.state, interpreted(platform, id_, shape)
    names = {number: ref for ref, number in state.streams.items()}
    stored = {
        (names[row.stream_id][1], row.timestamp): value_of(row.document)
        for _partition, row in state.updates.values()
        if names[row.stream_id][0] == id_
    }
    verdicts = {
        (names[stream][1], kind): times
        for (stream, kind), (times, _last) in state.verdicts.items()
        if names[stream][0] == id_
    }
    assert entries_of(state, id_) == plain.kept
    assert stored == plain.stored
    assert verdicts == dict(plain.verdicts)
    emitted = [
        (each.stream, each.timestamp, value_of(bytes(each.update)))
        for each in state.emitted
        if each.service_object == id_
    ]
    if all_:
        assert emitted == plain.emitted
    else:  # after a death some of it comes again
        assert set(emitted) == set(plain.emitted)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("knows", [True, False], ids=["told-beforehand", "asked-on"])
@LAW
@given(data=st.data())
def test_what_operators_make_follows_from_the_log(data, shape, knows) -> None:
    """However it is cut and put off, and whoever dies; times that mean nothing do nothing."""
    draw = data.draw
    platform = platform_with(shape)
    deaths = draw(
        st.dictionaries(st.integers(1, 12), st.sampled_from(["before", "after"]), max_size=2)
    )
    died = bool(deaths)
    evaluators = {
        "javascript": PythonEvaluator(plus_one),
        "counting": Operators(Counting(knows=knows)),
    }
    now = [-1.0]  # none comes by itself, at first
    runs = Runs(
        platform,
        evaluators,
        Whims(draw(st.lists(st.sets(st.integers(1, 2)), max_size=30))),
        deaths,
        draw(st.sampled_from([1, 3, 1000])),
        now=lambda: now[0],
    )
    runs.take(0, 0)
    streams = st.sampled_from(["d0", "d1"])
    put = st.tuples(st.just("put"), streams, st.integers(0, 25), st.integers(0, 99))
    tick = st.tuples(
        st.just("tick"),
        st.sampled_from([*COUNTED, "d0", "gone"]),
        st.integers(0, 40),
        st.integers(0, 3),
    )
    for kind, stream, timestamp, number in draw(
        st.lists(st.one_of(put, put, put, tick), max_size=40)
    ):
        for id_ in ("so", "other"):
            if kind == "put":
                append(platform, [((id_, stream), timestamp, number)])
            else:
                platform.log.append(
                    0, TickRecord(id_, stream, timestamp, (b"%d" % number, b"all"))
                )
        if draw(st.integers(0, 3)) == 0:
            runs.take(platform.state.progress[0].next_offset, len(platform.state.log[0]))
    _taken_in(runs)
    runs.finish()

    for id_ in ("so", "other"):
        assert_as_interpreted(platform, id_, shape, all_=not died)


def _taken_in(runs: Runs) -> None:
    platform = runs.platform
    while platform.state.progress[0].next_offset < len(platform.state.log[0]):
        runs.take(platform.state.progress[0].next_offset, len(platform.state.log[0]))


def test_a_time_comes_as_a_record_of_the_log_once() -> None:
    shape = SHAPES["one"]
    platform = platform_with(shape)
    evaluators = {"javascript": PythonEvaluator(plus_one), "counting": Operators(Counting())}
    now = [0.0]
    runs = Runs(platform, evaluators, Whims([]), {}, now=lambda: now[0])
    append(platform, [(("so", "d0"), 10, 1), (("so", "d0"), 12, 2)])
    runs.take(0, len(platform.state.log[0]))
    assert len(platform.state.log[0]) == 4, "nothing is due"
    assert runs.task.patience <= SILENT_MS

    now[0] = (10 + SILENT_MS) / 1000
    runs.task.rest()
    (tick,) = [r for _at, r in platform.log.records(0) if isinstance(r, TickRecord)]
    assert (tick.stream, tick.keys) == ("c0", (b"1",))
    now[0] += 1.5  # it is looked at again, and has been told
    runs.take(len(platform.state.log[0]), len(platform.state.log[0]))
    ticks = [r for _at, r in platform.log.records(0) if isinstance(r, TickRecord)]
    assert [each.keys for each in ticks] == [(b"1",), (b"2",)]
    _taken_in(runs)

    assert_as_interpreted(platform, "so", shape, all_=True)
    assert entries_of(platform.state, "so") == {("c0", "all"): (4, None)}


def test_whoever_begins_the_partition_next_knows_what_is_due() -> None:
    shape = SHAPES["one"]
    platform = platform_with(shape)
    evaluators = {"javascript": PythonEvaluator(plus_one), "counting": Operators(Counting())}
    runs = Runs(platform, evaluators, Whims([]), {}, now=lambda: 0.0)
    append(platform, [(("so", "d0"), 10, 1)])
    runs.take(0, len(platform.state.log[0]))

    again = Runs(platform, evaluators, Whims([]), {}, now=lambda: 1.0)
    again.task.rest()
    _taken_in(again)
    assert entries_of(platform.state, "so") == {("c0", "all"): (2, None)}
    assert value_of(bytes(platform.state.emitted[-1].update)) == -1


def _begin(platform: Platform) -> None:
    """Take the records by which the documents are in force."""
    evaluators = {"javascript": PythonEvaluator(plus_one), "counting": Operators(Counting())}
    Runs(platform, evaluators, Whims([]), {}).take(0, len(platform.state.log[0]))


def test_that_times_have_come_is_told_with_one_wait_for_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A hundred of each tenant's, each of another stream, were as many waits of the partition."""
    platform = platform_with(SHAPES["one"])
    _begin(platform)
    for service_object in ("so", "other"):
        stored_as = platform.state.streams[service_object, "c0"]
        platform.state.kept_entries[stored_as, b"k"] = KeptValue(b"1", 5)
    calls: list[str] = []
    for name in ("send_to_log", "flush"):
        _noting(monkeypatch, name, calls)

    evaluators = {"javascript": PythonEvaluator(plus_one), "counting": Operators(Counting())}
    Runs(platform, evaluators, Whims([]), {}, now=lambda: 1.0).task.rest()

    assert "".join(each[0] for each in calls).count("ssf") == 1
    assert calls.count("send_to_log") == 2


def _noting(monkeypatch: pytest.MonkeyPatch, name: str, calls: list[str]) -> None:
    does = getattr(MemoryOutput, name)

    def noted(self: Any, *arguments: Any) -> Any:
        calls.append(name)
        return does(self, *arguments)

    monkeypatch.setattr(MemoryOutput, name, noted)


def test_times_of_one_tenant_do_not_hold_up_those_of_another() -> None:
    """A tenant has a hundred under way at once."""
    platform = platform_with(SHAPES["one"])
    _begin(platform)
    store = platform.partition_store(lambda _code: [])
    stored_as = platform.state.streams["so", "c0"], platform.state.streams["other", "c0"]
    for number in range(500):
        platform.state.kept_entries[stored_as[0], b"%d" % number] = KeptValue(b"1", number)
    platform.state.kept_entries[stored_as[1], b"late"] = KeptValue(b"1", 900)

    due = store.due(0, 1000, 100)
    assert len(due) == 101
    assert (due[-1].service_object, due[-1].key) == ("other", b"late")


def test_what_operators_lack_is_asked_for_before_scripts_run() -> None:
    """Or a tenant would pay for its scripts once for each time."""
    platform = platform_with({"c1": ("d0",), "c2": ("d0",)})
    scripts = PythonEvaluator(plus_one)
    evaluators = {"javascript": scripts, "counting": Operators(Counting(knows=False))}
    runs = Runs(platform, evaluators, Whims([]), {}, now=lambda: -1.0)
    append(platform, [(("so", "d0"), 10, 1)])
    runs.take(0, len(platform.state.log[0]))

    assert entries_of(platform.state, "so") == {("c2", "all"): (1, None), ("c2", "1"): (1, 17)}
    assert len(scripts.asked) == 1
