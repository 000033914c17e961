"""A trial of streams over windows, and of silence: what comes when windows end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import orjson
import pytest
from engine_builders import a_service_object, document
from python_evaluator import PythonEvaluator, Trigger

from api.stepping.step import Step
from api.trials import watched
from api.trials.stored import Reading, Stored, _first
from api.trials.trial import Found, Trial, Update
from api.trials.trying import TrialsHere
from api.trials.version import Version
from servioticy.domain.access import Scope
from servioticy.domain.model import LastUpdate, ServiceObject, StreamRef

BASE = 1_700_000_000
NOW = BASE + 10_000
D, E = StreamRef("so", "d"), StreamRef("so", "e")


class Kept:
    """What is stored; before it there may be more, unless `since` is None."""

    def __init__(
        self,
        updates: Sequence[Update],
        lasts: Mapping[StreamRef, LastUpdate],
        since: int | None,
        missed: frozenset[StreamRef],
    ) -> None:
        self._updates, self._lasts, self._since = updates, lasts, since
        self._missed = missed

    def found(self, _trial: Trial, versions: Sequence[Version]) -> Reading[Found]:
        yield Step(b"")
        into = frozenset[StreamRef]().union(*[each.into_windows for each in versions])
        first = _first(self._lasts, into)
        return Found(
            [*first, *self._updates],
            self._lasts,
            (),
            complete=True,
            since=self._since,
            missed=self._missed,
        )


def counts(_trigger: Trigger, documents: Sequence[bytes | None]) -> int:
    """How many updates a window has, or how many streams are silent; of others the value."""
    read = json.loads(documents[0] or b"{}")
    if "windows" in read:
        return sum(each["count"] for each in read["windows"] if each is not None)
    value: int = read["channels"]["v"]["current-value"]
    return value


def at(second: int, ref: StreamRef = D, value: int = 1, *, wakes: bool = True) -> Update:
    return Update(ref, BASE + second, document(value), wakes)


def over(
    window: dict[str, Any] | None, reads: Sequence[str] = ("d",), **more: Any
) -> ServiceObject:
    options = ({} if window is None else {"window": window}) | more
    return a_service_object({"c": reads}, simple=("d", "e"), options=options)


def tried(
    before: ServiceObject | Sequence[ServiceObject],
    after: ServiceObject | Sequence[ServiceObject],
    updates: Sequence[Update],
    lasts: Mapping[StreamRef, LastUpdate] | None = None,
    since: int | None = None,
    missed: frozenset[StreamRef] = frozenset(),
) -> dict[str, Any]:
    kept = Kept(updates, lasts or {}, since, missed)
    sides = [[each] if isinstance(each, ServiceObject) else each for each in (before, after)]
    trial = Trial(1, Scope(), "so", *sides, 1000, 100, NOW * 1000)
    *_, last = TrialsHere(cast(Stored, kept), PythonEvaluator(counts)).steps(trial)
    answer: dict[str, Any] = orjson.loads(last.documents)
    return answer


def came(answer: dict[str, Any], side: str) -> list[tuple[int, int]]:
    """When results are of, from the beginning on, and their values."""
    return [
        (each["lastUpdate"] - BASE, each[side]["channels"]["v"])
        for each in answer["windows"]["results"]
        if "channels" in each.get(side, {})
    ]


MINUTE = {"type": "tumbling", "size": "1m"}
HALF = {"type": "tumbling", "size": "30s"}


def test_results_of_both_versions_are_compared_by_their_time() -> None:
    """Not by the updates that end them, which are others in each version."""
    updates = [at(40 + second) for second in (0, 10, 30, 50)]
    answer = tried(over(HALF), over(MINUTE), updates)

    assert came(answer, "before") == [(69, 2), (99, 2)]
    assert came(answer, "after") == [(99, 4)]
    (same,) = [e for e in answer["windows"]["results"] if "before" in e and "after" in e]
    assert same["differences"] == [{"channel": "v", "before": 2, "after": 4}]
    assert answer["windows"]["differing"] == len(answer["windows"]["results"])
    assert answer["differing"] == 0
    assert answer["after"]["verdicts"]["emitted"] == 1


def test_windows_that_reach_back_before_what_was_played_are_left_out_and_counted() -> None:
    last = {D: LastUpdate(BASE + 25, document(1))}
    answer = tried(over(HALF), over(HALF), [at(30), at(70), at(110)], last, since=BASE + 30)

    assert came(answer, "before") == [(99, 1), (129, 1)]
    assert answer["windows"]["leftOut"] == {"before": 1, "after": 1}
    everything = tried(over(HALF), over(HALF), [at(30), at(70), at(110)])
    assert everything["windows"]["leftOut"] == {"before": 0, "after": 0}
    assert came(everything, "before") == [(39, 1), (99, 1), (129, 1)]


def test_sessions_that_may_have_begun_before_are_left_out() -> None:
    session = over({"type": "session", "gap": "10s", "max": "30s"})
    updates = [at(second) for second in (*range(0, 60, 5), 100)]
    answer = tried(session, session, updates, since=BASE)

    assert came(answer, "before") == [(109, 1)], "borders of the others depend on what was before"
    assert answer["windows"]["leftOut"]["before"] == 2


@pytest.mark.parametrize("window", [{"type": "global"}, {"type": "session", "gap": "5s"}])
def test_windows_over_windows_without_known_borders_are_left_out(window: dict[str, Any]) -> None:
    made = over(window)
    other = a_service_object(
        {"x": ["g"]},
        id_="other",
        simple=(),
        groups={"g": (["so"], "c")},
        sequence=1,
        options={"window": MINUTE},
    )
    updates = [at(second) for second in range(0, 300, 20)]
    some = tried([made, other], [made, other], updates, since=BASE)
    every = tried([made, other], [made, other], updates)

    assert not [e for e in some["windows"]["results"] if e["stream"] == "other/x"]
    assert [e for e in every["windows"]["results"] if e["stream"] == "other/x"]


def test_what_windows_read_of_others_is_in_them_though_it_is_not_played() -> None:
    """A group of another Service Object: its updates wake nobody, but belong into windows."""
    made = over(None)
    other = a_service_object(
        {"x": ["g", "h"]},
        id_="other",
        simple=(),
        groups={"g": (["so"], "c"), "h": (["far"], "y")},
        sequence=1,
        options={"window": MINUTE},
    )
    far = StreamRef("far", "y")
    updates = [at(0), at(10, far, wakes=False), at(20), at(100)]
    answer = tried([made, other], [made, other], updates)
    found = [e["after"]["channels"]["v"] for e in answer["windows"]["results"]]
    missed = tried([made, other], [made, other], updates, missed=frozenset([far]))

    assert found[0] == 3
    assert answer["played"] == 3
    assert not missed["windows"]["results"], "some of its updates may be missing at any time"


def test_who_has_ever_sent_is_known_to_be_silent() -> None:
    made = over(None, ("d", "e"), silent="1m")
    lasts = {E: LastUpdate(BASE + 80, document(1))}
    answer = tried(made, made, [at(100), at(130), at(150, E)], lasts, since=BASE + 100)

    assert came(answer, "before")[0] == (140, 1)
    assert came(answer, "before")[1] == (150, 0)
    never = tried(made, made, [at(100), at(130), at(150, E)], since=BASE + 100)
    assert (140, 1) not in came(never, "before")


def test_time_goes_on_until_now() -> None:
    """An input that has been silent since its last update is told, without another one."""
    made = over(None, silent="1m")
    answer = tried(made, made, [at(0)])

    assert came(answer, "after") == [(60, 1)]


def test_early_results_and_late_updates_are_told_as_that() -> None:
    early = over(MINUTE | {"emit": "updates"})
    answer = tried(early, early, [at(20), at(25), at(100)])
    first, second, final = answer["windows"]["results"][:3]

    assert [(e.get("revision"), e.get("early")) for e in (first, second, final)] == [
        (1, True),
        (2, True),
        (None, None),
    ]
    assert final["after"]["channels"] == {"v": 2}


def test_what_does_not_fit_into_windows_is_told_with_its_update() -> None:
    answer = tried(over(MINUTE), over(MINUTE), [Update(D, 5, document(1), played=True)])

    (result,) = answer["updates"][0]["results"]
    assert result["stream"] == "so/c"
    assert result["after"]["verdict"] == "error"
    assert "is no time of these days" in result["after"]["message"]


def test_it_is_noted_where_borders_depend_on_the_beginning() -> None:
    count = over({"type": "count", "size": 2})
    answer = tried(over({"type": "global"}), count, [at(0), at(1)], since=BASE)

    assert len(answer["windows"]["notes"]) == 2
    assert answer["windows"]["notes"][1].startswith("so/c: where windows of so many updates")
    assert came(answer, "after") == [(1, 2)]
    assert came(answer, "before") == []
    everything = tried(over({"type": "global"}), count, [at(0), at(1)])
    assert everything["windows"]["notes"] == []
    assert came(everything, "before") == [(0, 1), (1, 2)]
    arrival = over(MINUTE | {"time": "arrival"})
    (note,) = tried(arrival, arrival, [at(0)])["windows"]["notes"]
    assert "lastUpdate" in note


def test_a_stream_that_had_no_window_is_compared_by_time() -> None:
    answer = tried(over(None), over(MINUTE), [at(20), at(39)])

    assert [each["results"] for each in answer["updates"]] == [[], []]
    assert came(answer, "before") == [(20, 1), (39, 1)]
    assert came(answer, "after") == [(39, 2)]


def test_what_windows_keep_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "KEPT_BYTES", 4000)
    made = over({"type": "hopping", "size": "10m", "every": "1s"})
    answer = tried(made, made, [at(second) for second in range(100)])

    assert 0 < answer["played"] < 100
    assert answer["truncated"].endswith(watched.OVER_KEPT)


def test_without_windows_nothing_is_told_of_them() -> None:
    assert "windows" not in tried(over(None), over(None), [at(0)])
