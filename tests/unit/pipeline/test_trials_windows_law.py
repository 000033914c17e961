"""What a trial tells of windows is what the engine makes of them, where they are whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from played_windows import (
    BASE,
    CUTS,
    GRAPHS,
    NOW,
    Real,
    body_of,
    compute,
    document,
    value_of,
)
from python_evaluator import PythonEvaluator

from api.stepping.step import Step
from api.trials import trying
from api.trials.stored import Reading, Stored, _first
from api.trials.trial import Found, Trial, Update
from api.trials.trying import TrialsHere
from api.trials.version import Version
from sandbox import argument_names
from servioticy.domain.access import Scope
from servioticy.domain.documents.service_objects import parse_service_object
from servioticy.domain.model import LastUpdate, ServiceObject, StreamRef

SIZES = {"tumbling": 7, "delayed": 5, "hopping": 6, "across": 5, "sliding": 5, "revised": 4}
"""In seconds, of those that are as long as they say."""


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


def emitted(real: Real, streams: Sequence[str]) -> dict[Came, int]:
    """What is of one time and number is one update: the last one."""
    return {
        _came(f"so/{each.stream}", json.loads(bytes(each.update))): value_of(bytes(each.update))
        for each in real.platform.state.emitted
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
    came = emitted(real, sorted(behind(reads, windowed)))

    whole = tried(body, Kept(played, {}, all_=True))
    assert told(whole, "before") == told(whole, "after") == came
    assert (whole["differing"], whole["windows"]["differing"]) == (0, 0)

    last = data.draw(st.integers(1, len(played)))
    some = told(tried(body, Kept(played[-last:], real.stored(), all_=False)), "before")
    for name in sorted(windowed):
        if cuts[name] != "count":
            finals, found = _finals(came, name), _finals(some, name)
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
