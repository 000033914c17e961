"""What a trial tells of windows is what the engine makes of them, where they are whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import MemoryPlatform
from new_service_objects import new_service_object
from put_off_runs import Runs, Whims
from python_evaluator import PythonEvaluator, Trigger

from api.stepping.step import Step
from api.trials import trying
from api.trials.stored import Reading, Stored, _first
from api.trials.trial import Found, Trial, Update
from api.trials.trying import TrialsHere
from api.trials.version import Version
from sandbox import argument_names
from servioticy.domain.access import Scope
from servioticy.domain.documents.service_objects import parse_service_object
from servioticy.domain.evaluators.every import every
from servioticy.domain.model import LastUpdate, ServiceObject, StreamRef
from servioticy.domain.records import UpdateRecord

BASE = 1_700_000_000
"""The time at which series begin, in seconds."""
NOW = BASE + 2_000

CUTS: dict[str, dict[str, Any]] = {
    "tumbling": {"window": {"type": "tumbling", "size": "7s"}},
    "delayed": {"window": {"type": "tumbling", "size": "5s", "delay": "3s", "idle": "20s"}},
    "hopping": {"window": {"type": "hopping", "size": "6s", "every": "2s"}},
    "across": {"window": {"type": "hopping", "size": "5s", "every": "3s", "idle": "9s"}},
    "sliding": {"window": {"type": "sliding", "size": "5s"}},
    "sessions": {"window": {"type": "session", "gap": "3s", "max": "12s"}},
    "count": {"window": {"type": "count", "size": 4, "every": 2}},
    "global": {"window": {"type": "global"}},
    "silence": {"silent": "9s"},
    "revised": {"window": {"type": "tumbling", "size": "4s", "lateness": "6s"}},
    "early": {"window": {"type": "tumbling", "size": "6s", "emit": "updates"}},
    "early on a condition": {
        "window": {"type": "tumbling", "size": "6s", "emit": {"when": "true"}}
    },
    "early at times": {
        "window": {"type": "hopping", "size": "6s", "every": "2s", "emit": {"every": "3s"}}
    },
}
SIZES = {"tumbling": 7, "delayed": 5, "hopping": 6, "across": 5, "sliding": 5, "revised": 4}
"""In seconds, of those that are as long as they say."""
GRAPHS: dict[str, tuple[dict[str, tuple[str, ...]], set[str]]] = {
    "one": ({"c0": ("d0",)}, {"c0"}),
    "two inputs": ({"c0": ("d0", "d1")}, {"c0"}),
    "two of one": ({"c0": ("d0",), "c1": ("d0", "d1")}, {"c0", "c1"}),
    "what reads windows": ({"c0": ("d0",), "c1": ("c0", "d1")}, {"c0"}),
    "behind others": ({"c0": ("d0", "d1"), "c1": ("c0",)}, {"c1"}),
    "windows of windows": ({"c0": ("d0",), "c1": ("c0", "d1")}, {"c0", "c1"}),
    "a circle": ({"c0": ("d0", "c1"), "c1": ("c0",)}, {"c0"}),
}


@pytest.fixture(autouse=True, scope="module")
def _in_no_hurry() -> Iterator[None]:
    """A busy machine is to break no law."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(trying, "SECONDS", 600.0)
        yield


class Came(NamedTuple):
    """An update that came when windows ended."""

    stream: str
    timestamp: int
    revision: int | None
    is_early: bool


def value_of(document: bytes) -> int:
    found: int = json.loads(document)["channels"]["v"]["current-value"]
    return found


def compute(trigger: Trigger, documents: list[bytes | None]) -> int:
    """What tells one window from another; of others the sum."""
    value = value_from(trigger, documents)
    return value % 3 != 0 if trigger.is_condition else value


def value_from(trigger: Trigger, documents: list[bytes | None]) -> int:
    document = json.loads(documents[trigger.argument] or b"")
    if "windows" not in document:
        return sum(value_of(each) for each in documents[:-1] if each) % 10**9
    found = [each for each in document["windows"] if each is not None]
    if "silent" in found[0]:
        return int(found[0]["count"]) * 10 + found[0]["silent"]
    some = [each for each in found if each["count"]]
    return (
        sum(
            each["count"] * 10**6 + int(each["sum"]["v"]) + (number + 1) * int(each["last"]["v"])
            for number, each in enumerate(some)
        )
        % 10**12
    )


def body_of(reads: dict[str, tuple[str, ...]], cuts: dict[str, str]) -> dict[str, Any]:
    streams: dict[str, Any] = {n: {"channels": {"v": {"type": "number"}}} for n in ("d0", "d1")}
    for name, read in reads.items():
        code = f"function({', '.join(read)}){{return 1}}"
        streams[name] = {"channels": {"v": {"type": "number", "current-value": code}}}
        streams[name] |= CUTS[cuts[name]] if name in cuts else {}
    return {"version": "0.2.0", "streams": streams}


def document(timestamp: int, value: int) -> bytes:
    body = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
    return json.dumps(body, separators=(",", ":")).encode()


class Real:
    """The engine, whose clock is that of the updates; each time comes when it is due."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.platform = MemoryPlatform()
        tenant = self.platform.tenants.tenant_of(self.platform.tenants.create_tenant("t"))
        self.platform.changes.create(new_service_object(tenant, "so", body))
        self._now = -1.0
        self._runs = Runs(
            self.platform,
            every(PythonEvaluator(compute)),
            Whims([]),
            {},
            now=lambda: self._now,
        )
        self._runs.take(0, 0)

    def put(self, stream: str, timestamp: int, value: int) -> None:
        self.pass_to(timestamp)
        update = msgspec.Raw(document(timestamp, value))
        record = UpdateRecord("so", stream, timestamp, update, at=timestamp * 1000)
        self.platform.log.append(0, record)
        self._taken_in()

    def pass_to(self, timestamp: int) -> None:
        entries = self.platform.partition_store(argument_names)
        while (due := entries.next_due(0, int(self._now * 1000))) is not None:
            if due > timestamp * 1000:
                break
            self._now = due / 1000
            self._runs.rest()
            self._taken_in()
        self._now = max(self._now, timestamp)

    def _taken_in(self) -> None:
        state = self.platform.state
        while (first := state.progress[0].next_offset) < len(state.log[0]):
            self._runs.take(first, len(state.log[0]))
        self._runs.finish()

    def stored(self) -> dict[str, list[tuple[int, bytes]]]:
        state = self.platform.state
        names = {number: ref[1] for ref, number in state.streams.items()}
        found: dict[str, list[tuple[int, bytes]]] = {}
        for _partition, row in state.updates.values():
            found.setdefault(names[row.stream_id], []).append((row.timestamp, row.document))
        return {name: sorted(each) for name, each in found.items()}

    def emitted(self, streams: Sequence[str]) -> dict[Came, int]:
        """What is of one time and number is one update: the last one."""
        return {
            _came(f"so/{each.stream}", json.loads(bytes(each.update))): value_of(
                bytes(each.update)
            )
            for each in self.platform.state.emitted
            if each.stream in streams
        }


def _came(stream: str, told: dict[str, Any]) -> Came:
    return Came(stream, told["lastUpdate"], told.get("revision"), "early" in told)


class Kept:
    """What is stored: a series, and what the engine has made of it."""

    def __init__(
        self, played: Sequence[Update], stored: dict[str, list[tuple[int, bytes]]], *, all_: bool
    ) -> None:
        self._played = played
        self._stored = stored
        self._all = all_

    def found(self, _trial: Trial, versions: Sequence[Version]) -> Reading[Found]:
        yield Step(b"")
        since = self._played[0].timestamp
        lasts: dict[StreamRef, LastUpdate] = {}
        first = {each.stream.stream for each in self._played if each.timestamp == since}
        for name, updates in self._stored.items():
            until = since + (name in ("d0", "d1") and name not in first)
            before = [each for each in updates if each[0] < until]
            if before:
                lasts[StreamRef("so", name)] = LastUpdate(*before[-1])
        into = frozenset[StreamRef]().union(*[each.into_windows for each in versions])
        return Found(
            [*_first(lasts, into), *self._played],
            lasts,
            (),
            complete=True,
            since=None if self._all else since,
        )


def tried(body: dict[str, Any], kept: Kept) -> dict[str, Any]:
    definition = parse_service_object(body, "so", argument_names)
    numbers = {each.ref.stream: n for n, each in enumerate(definition.streams)}
    made = ServiceObject(definition, 1, 1, 0, numbers)
    trial = Trial(1, Scope(), "so", [made], [made], 1000, 100, NOW * 1000)
    here = TrialsHere(cast(Stored, kept), PythonEvaluator(compute))
    *_, last = here.steps(trial)
    found: dict[str, Any] = orjson.loads(last.documents)
    assert "truncated" not in found
    return found


def told(answer: dict[str, Any], side: str) -> dict[Came, int]:
    """What came of windows in a version."""
    return {
        _came(each["stream"], each): each[side]["channels"]["v"]
        for each in answer["windows"]["results"]
        if "channels" in each.get(side, {})
    }


def behind(reads: dict[str, tuple[str, ...]], windowed: set[str]) -> set[str]:
    found = set(windowed)
    for _ in reads:
        found |= {name for name, read in reads.items() if found & set(read)}
    return found


@pytest.mark.parametrize("graph", GRAPHS)
@settings.get_profile("trials")
@given(data=st.data())
def test_what_is_told_of_windows_is_what_the_engine_makes_of_them(data, graph) -> None:
    """Of all updates everything; of the last ones nothing that is not so."""
    reads, windowed = GRAPHS[graph]
    names = sorted(set(CUTS) - ({"global"} if graph == "a circle" else set()))
    cuts = {name: data.draw(st.sampled_from(names)) for name in sorted(windowed)}
    body, at, series = body_of(reads, cuts), BASE, []
    steps = st.tuples(
        st.sampled_from(["d0", "d1"]), st.integers(0, 6) | st.just(40), st.integers(0, 99)
    )
    seen: set[tuple[str, int]] = set()
    for stream, later, value in data.draw(st.lists(steps, min_size=1, max_size=30)):
        at += later
        if (stream, at) not in seen and ("d1" in str(reads) or stream == "d0"):
            seen.add((stream, at))
            series.append((stream, at, value))
    if not series:
        return
    real = Real(body)
    for each in series:
        real.put(*each)
    real.pass_to(NOW)
    played = [Update(StreamRef("so", s), at, document(at, v), played=True) for s, at, v in series]
    emitted = real.emitted(sorted(behind(reads, windowed)))

    whole = tried(body, Kept(played, {}, all_=True))
    assert told(whole, "before") == told(whole, "after") == emitted
    assert (whole["differing"], whole["windows"]["differing"]) == (0, 0)

    last = data.draw(st.integers(1, len(played)))
    some = told(tried(body, Kept(played[-last:], real.stored(), all_=False)), "before")
    for name in sorted(windowed):
        if cuts[name] != "count":
            finals, found = _finals(emitted, name), _finals(some, name)
            assert found.items() <= finals.items()
            since = played[-last].timestamp
            if set(reads[name]) <= {"d0", "d1"} and cuts[name] in SIZES:
                size = SIZES[cuts[name]]
                whole_ones = {each for each in finals if each.timestamp + 1 - size > since}
                assert found.keys() == whole_ones


def _finals(came: dict[Came, int], name: str) -> dict[Came, int]:
    return {
        each: value
        for each, value in came.items()
        if each.revision is None and each.stream == f"so/{name}"
    }
