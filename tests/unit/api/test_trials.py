"""What a changed document would have made of stored updates, beside what is in force."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import orjson
import pytest
from engine_builders import a_service_object, document
from hypothesis import given
from hypothesis import strategies as st
from plain_trees import Ends
from python_evaluator import Compute, PythonEvaluator, Trigger

from api.stepping.step import Step
from api.trials import trying, watched
from api.trials.stored import LOOKED_AT_BYTES, R, Reading, Stored, _Last
from api.trials.trial import INPUT_BYTES, Found, Trial, Update
from api.trials.trying import TrialsHere
from sandbox import InfraError
from sandbox.trees import Call, Grown
from servioticy.domain.access import Scope
from servioticy.domain.model import LastUpdate, ServiceObject, StreamKey, StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.history import VersionedUpdate
from servioticy.refusals import Refused

NOW = 1_700_000_000_000

D, E, C = StreamRef("so", "d"), StreamRef("so", "e"), StreamRef("so", "c")


class Kept:
    """What is stored, whoever asks."""

    def __init__(self, found: Found) -> None:
        self.found_ = found

    def found(self, _trial: Trial, _versions: object) -> Reading[Found]:
        yield Step(b"")
        return self.found_


def sums(_trigger: Trigger, documents: Sequence[bytes | None]) -> float:
    """The sum of all values that there are, but for its own last one, which is the last input."""
    read = [each for each in documents[:-1] if each]
    return sum(json.loads(each)["channels"]["v"]["current-value"] for each in read)


def played(*updates: tuple[StreamRef, int, int], wakes: bool = True) -> list[Update]:
    return [Update(ref, at, document(value), wakes) for ref, at, value in updates]


def tried(
    before: Sequence[ServiceObject],
    after: Sequence[ServiceObject],
    updates: Sequence[Update],
    lasts: Mapping[StreamRef, LastUpdate] | None = None,
    compute: Compute = sums,
    **found: Any,
) -> dict[str, Any]:
    """The answer to a trial of the Service Object `so`."""
    kept = Found(updates, lasts or {}, found.get("unread", ()), found.get("complete", True))
    trial = Trial(1, Scope(), "so", before, after, 100, 100, NOW)
    here = TrialsHere(cast(Stored, Kept(kept)), PythonEvaluator(compute))
    *_, last = here.steps(trial)
    answer: dict[str, Any] = orjson.loads(last.documents)
    return answer


def results(answer: dict[str, Any]) -> list[dict[str, dict[str, Any]]]:
    """Of each update what is told of each stream."""
    return [{each["stream"]: each for each in u["results"]} for u in answer["updates"]]


def one(reads: Sequence[str], **more: Any) -> ServiceObject:
    return a_service_object({"c": reads}, simple=("d", "e"), **more)


def test_both_versions_are_told_and_where_they_differ_by_channel() -> None:
    answer = tried([one(["d"])], [one(["d", "e"])], played((E, 1, 10), (D, 2, 3), (E, 3, 20)))

    first, second, third = results(answer)
    assert first["so/c"] == {
        "stream": "so/c",
        "after": {"verdict": "emitted", "lastUpdate": 1, "channels": {"v": 10}},
        "differences": [{"channel": "v", "after": 10}],
        "differs": True,
    }
    assert second["so/c"]["before"]["channels"] == {"v": 3}
    assert second["so/c"]["after"]["channels"] == {"v": 13}
    assert second["so/c"]["differences"] == [{"channel": "v", "before": 3, "after": 13}]
    assert third["so/c"]["after"]["channels"] == {"v": 23}
    assert (answer["played"], answer["differing"]) == (3, 3)
    assert answer["before"]["verdicts"] == {"emitted": 1}
    assert answer["after"] | {"verdicts": {"emitted": 3}, "computations": 3} == answer["after"]


def test_what_is_derived_from_it_in_other_service_objects_is_told_too() -> None:
    other = a_service_object(
        {"x": ["g"]}, id_="other", simple=(), groups={"g": (["so"], "c")}, sequence=1
    )
    answer = tried([one(["d"]), other], [one(["e"]), other], played((D, 1, 5), (E, 2, 6)))

    first, second = results(answer)
    assert first["other/x"]["before"]["channels"] == {"v": 5}
    assert "after" not in first["other/x"]
    assert second["other/x"]["after"]["channels"] == {"v": 6}


def test_what_only_others_read_is_as_it_was_then_and_wakes_nobody() -> None:
    """Else what is derived would be computed with what came long after."""
    other = a_service_object(
        {"x": ["g", "h"]},
        id_="other",
        simple=(),
        groups={"g": (["so"], "c"), "h": (["far"], "y")},
        sequence=1,
    )
    y = StreamRef("far", "y")
    beside = [Update(y, 15, document(100), played=False)]
    updates = sorted(played((D, 10, 1), (D, 20, 2)) + beside, key=lambda each: each.timestamp)
    answer = tried(
        [one(["d"]), other], [one(["d"]), other], updates, {y: LastUpdate(1, document(7))}
    )

    first, second = results(answer)
    assert first["other/x"]["after"]["channels"] == {"v": 8}
    assert second["other/x"]["after"]["channels"] == {"v": 102}
    assert answer["differing"] == 0
    assert answer["played"] == 2


def test_an_output_that_was_there_before_makes_updates_stale_as_ever() -> None:
    answer = tried(
        [one(["d"])], [one(["d"])], played((D, 5, 1), (D, 6, 1)), {C: LastUpdate(5, document(0))}
    )

    first, second = results(answer)
    assert first["so/c"]["before"]["verdict"] == "stale"
    assert first["so/c"]["before"]["message"] == "trigger 5 is not newer than output 5"
    assert second["so/c"]["before"]["verdict"] == "emitted"
    assert answer["before"]["verdicts"] == {"emitted": 1, "stale": 1}


def test_only_the_verdict_may_differ() -> None:
    """A filter that is false beside one that throws: neither has values."""
    seen: list[int] = []

    def turns(_trigger: Trigger, _documents: Sequence[bytes | None]) -> None:
        seen.append(1)
        raise Ends("filtered" if len(seen) % 2 else "script-error", "no")

    answer = tried([one(["d"])], [one(["d"])], played((D, 1, 1)), compute=turns)

    (result,) = results(answer)
    assert result["so/c"]["before"] == {"verdict": "filtered", "message": "no"}
    assert result["so/c"]["after"] == {"verdict": "script-error", "message": "no"}
    assert result["so/c"]["differences"] == []
    assert answer["differing"] == 1


def test_a_simple_stream_that_becomes_a_composite_is_not_played_where_it_is_computed() -> None:
    before = a_service_object({"c": ["e"]}, simple=("d", "e"))
    after = a_service_object({"e": ["d"], "c": ["e"]}, simple=("d",))
    answer = tried([before], [after], played((D, 1, 4), (E, 2, 9)))

    first, second = results(answer)
    assert first["so/c"]["after"]["channels"] == {"v": 4}
    assert second["so/c"]["before"]["channels"] == {"v": 9}
    assert "after" not in second["so/c"]


def test_without_composites_there_is_nothing_to_tell() -> None:
    answer = tried([a_service_object()], [a_service_object()], [])

    assert (answer["played"], answer["differing"], answer["updates"]) == (0, 0, [])


@pytest.mark.parametrize(
    ("name", "most", "why"),
    [
        ("COMPUTATIONS", 4, watched.OVER_COMPUTATIONS),
        ("VERSION_BYTES", 900, watched.OVER_BYTES),
    ],
)
def test_beyond_a_bound_what_was_played_until_then_is_told(
    name: str, most: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, name, most)
    updates = played(*((D, at, at) for at in range(1, 11)))
    answer = tried([one(["d"])], [one(["d"])], updates)

    done = answer["played"]
    assert 0 < done < 10
    assert answer["truncated"] == f"after {done} of 10 updates: {why}"
    assert answer["before"]["computations"] == answer["after"]["computations"] == done


def test_code_that_takes_all_the_time_ends_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trying, "SECONDS", 0.05)

    def slow(_trigger: Trigger, _documents: Sequence[bytes | None]) -> int:
        time.sleep(0.02)
        return 1

    updates = played(*((D, at, at) for at in range(1, 11)))
    answer = tried([one(["d"])], [one(["d"])], updates, compute=slow)

    assert answer["played"] < 4
    assert watched.OVER_TIME in answer["truncated"]


def test_a_sandbox_that_cannot_is_unavailable() -> None:
    class Broken(PythonEvaluator):
        def evaluate(
            self, _tenant: str, _calls: Sequence[Call], _within: float | None = None
        ) -> list[Grown]:
            raise InfraError("no room")

    kept = Kept(Found(played((D, 1, 1)), {}, (), complete=True))
    here = TrialsHere(cast(Stored, kept), Broken(sums))
    with pytest.raises(Unavailable, match="no room"):
        list(here.steps(Trial(1, Scope(), "so", [one(["d"])], [one(["d"])], 100, 100, NOW)))


def test_composites_of_other_evaluators_are_refused_and_not_computed_wrongly() -> None:
    made = one(["d"])
    streams = tuple(
        replace(each, composite=replace(each.composite, evaluator="python"))
        if each.composite
        else each
        for each in made.definition.streams
    )
    other = replace(made, definition=replace(made.definition, streams=streams))
    with pytest.raises(Refused, match="does not compute python yet"):
        tried([made], [other], played((D, 1, 1)))


def test_it_is_told_what_was_not_read_and_that_not_all_was() -> None:
    answer = tried([one(["d"])], [one(["d"])], [], unread=[StreamRef("far", "y")], complete=False)

    assert answer["notRead"] == ["far/y"]
    assert answer["truncated"] == "what it reads is too large: not all of it was looked at"


def test_where_composites_settle_only_the_last_path_computes() -> None:
    """It is not known beforehand which that is: so the tree is taken again, and counts once."""
    made = a_service_object(
        {"a": ["d"], "b": ["a"], "c": ["a", "b"]}, options={"diamonds": "settle"}
    )
    answer = tried([made], [made], played((D, 1, 2)))

    (result,) = results(answer)
    assert result["so/c"]["after"]["channels"] == {"v": 4}
    assert answer["after"]["verdicts"] == {"emitted": 3, "superseded": 1}


@given(
    st.lists(st.tuples(st.sampled_from("de"), st.integers(1, 6), st.integers(0, 3)), max_size=12),
    st.dictionaries(
        st.sampled_from("abc"),
        st.lists(st.sampled_from("deabc"), min_size=1, max_size=3, unique=True),
        min_size=1,
    ),
    st.sampled_from([{}, {"diamonds": "settle"}, {"staleness": "input"}, {"missing": "skip"}]),
)
def test_a_document_that_does_not_change_makes_no_difference(
    updates: list[tuple[str, int, int]], reads: dict[str, list[str]], options: dict[str, str]
) -> None:
    reads = {
        name: [each for each in some if each in reads or each in "de"]
        for name, some in reads.items()
    }
    reads = {name: [e for e in some if e != name] or ["d"] for name, some in reads.items()}
    made = a_service_object(reads, simple=("d", "e"), options=options)
    answer = tried(
        [made], [replace(made)], played(*((StreamRef("so", s), at, v) for s, at, v in updates))
    )

    assert answer["differing"] == 0
    assert answer["before"]["verdicts"] == answer["after"]["verdicts"]
    assert answer["played"] == len(updates)


class Pages:
    """Updates of streams by number, each a sorted list of timestamps."""

    def __init__(self, stored: Mapping[int, Sequence[int]]) -> None:
        self._stored = stored
        self.asked = 0

    def page(
        self,
        stream: StreamKey,
        span: tuple[int, int],
        most_rows: int,
        _most_bytes: int,
        *,
        newest_first: bool,
    ) -> list[VersionedUpdate]:
        assert newest_first
        self.asked += 1
        fit = [at for at in self._stored[stream.stream_id] if span[0] <= at <= span[1]]
        return [VersionedUpdate(at, document(at), 1) for at in fit[::-1][:most_rows]]


@given(
    st.dictionaries(
        st.integers(0, 20), st.sets(st.integers(1, 60), min_size=1, max_size=12), max_size=12
    ),
    st.integers(1, 20),
)
def test_the_newest_of_all_streams_are_played(stored: dict[int, set[int]], most: int) -> None:
    """Whichever streams they are of: those that have none of them are not asked."""
    pages = Pages({number: sorted(each) for number, each in stored.items()})
    refs = {StreamRef("so", f"{number:02}"): StreamKey(1, number) for number in stored}
    newest = {ref: max(stored[key.stream_id]) for ref, key in refs.items()}
    _steps, found = read(_Last(cast(Any, pages), most).of(refs, newest))

    every = sorted((-at, f"{number:02}") for number, each in stored.items() for at in each)
    wanted = [(-at, name) for at, name in every[:most]][::-1]
    assert [(each.timestamp, each.stream.stream) for each in found] == wanted
    assert pages.asked <= most + sum(newest[ref] == found[0].timestamp for ref in refs if found)


class Large:
    """Each stream has many updates that are a little newer than those of the one before."""

    def __init__(self) -> None:
        self.given = 0

    def page(
        self, stream: StreamKey, span: Any, most: int, most_bytes: int, **_: Any
    ) -> list[VersionedUpdate]:
        size = most_bytes // most
        self.given += size * most
        first = 1000 * stream.stream_id
        newest = [MANY * 1000, *range(first + most, first + 1, -1)]
        return [VersionedUpdate(at, b"x" * size, 1) for at in newest if at >= span[0]]


MANY = 50


def test_no_more_is_read_than_a_few_times_what_is_played() -> None:
    """Of two thousand streams each might have as much as all that is played."""
    large = Large()
    refs = {StreamRef("so", f"{number:02}"): StreamKey(1, number) for number in range(MANY)}
    last = _Last(cast(Any, large), 100)

    steps, found = read(last.of(refs, dict.fromkeys(refs, MANY * 1000)))

    assert large.given <= LOOKED_AT_BYTES + INPUT_BYTES
    assert not last.complete
    assert found
    assert steps == large.given // (INPUT_BYTES // 100 * 100), "others have their turn between"


def read(reading: Reading[R]) -> tuple[int, R]:
    """The number of steps, and what comes of them."""
    steps = 0
    while True:
        try:
            next(reading)
        except StopIteration as end:
            return steps, end.value
        steps += 1
