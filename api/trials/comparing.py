"""What came of both versions, side by side, and where they differ: what is told of a trial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from api.trials.playing import Ending, Played, Result
from api.trials.trial import Update
from servioticy.domain.verdicts import EMITTED

SIDES = ("before", "after")


class Comparison:
    """Takes what came of one update after the other."""

    def __init__(self) -> None:
        self._told: list[dict[str, Any]] = []
        self._kinds: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        self._seconds = [0.0, 0.0]
        self._differing = 0
        self._results: tuple[dict[Result, Ending], dict[Result, Ending]] = {}, {}

    def add(self, update: Update, played: Sequence[Played]) -> None:
        """`played`: what came of it before and after the change."""
        self.passed(played)
        if not update.played:
            return
        before, after = (each.endings for each in played)
        results = [
            _compared(str(ref), before.get(ref), after.get(ref))
            for ref in sorted(before.keys() | after.keys())
        ]
        differs = any(each["differs"] for each in results)
        self._differing += differs
        self._told.append(
            {
                "stream": str(update.stream),
                "lastUpdate": update.timestamp,
                "differs": differs,
                "results": results,
                "processorMs": {
                    name: _ms(each.seconds) for name, each in zip(SIDES, played, strict=True)
                },
            }
        )

    def passed(self, played: Sequence[Played]) -> None:
        """Take what is told of no update alone."""
        for side, each in enumerate(played):
            self._kinds[side].update(each.kinds)
            self._seconds[side] += each.seconds
            results = self._results[side]
            for result, ending in each.results.items():
                if ending.verdict == EMITTED or result not in results:
                    results[result] = ending  # what came is told, and not who was too late for it

    def __len__(self) -> int:
        """Return of how many updates."""
        return len(self._told)

    def told(self) -> dict[str, Any]:
        """Return the answer, but for what stands beside it."""
        sums = {
            name: {
                "computations": sum(kinds.values()),
                "verdicts": dict(sorted(kinds.items())),
                "processorMs": _ms(seconds),
                "processorMsPerUpdate": _ms(seconds / max(1, len(self._told))),
            }
            for name, kinds, seconds in zip(SIDES, self._kinds, self._seconds, strict=True)
        }
        return {
            "played": len(self._told),
            "differing": self._differing,
            **sums,
            "updates": self._told,
        }

    def told_of_windows(self) -> dict[str, Any]:
        """Return what came when windows ended, by time: what is of one time is one result."""
        before, after = self._results
        results = [
            _of_windows(each) | _compared(str(each.stream), before.get(each), after.get(each))
            for each in sorted(before.keys() | after.keys(), key=_place)
        ]
        return {"differing": sum(each["differs"] for each in results), "results": results}


def _place(result: Result) -> tuple[Any, ...]:
    """Return the place among all: a final result follows the early ones, revisions follow it."""
    revision = result.revision
    rank: tuple[int, int, bool] = 1, 0, False
    if revision is not None:
        rank = 0 if revision.early else 2, revision.number, revision.retracted
    return result.timestamp, result.stream, rank


def _of_windows(result: Result) -> dict[str, Any]:
    told: dict[str, Any] = {"lastUpdate": result.timestamp}
    if result.revision is not None:
        told["revision"] = result.revision.number
        if result.revision.early:
            told["early"] = True
        if result.revision.retracted:
            told["retracted"] = True
    return told


def _compared(stream: str, before: Ending | None, after: Ending | None) -> dict[str, Any]:
    """Return what is told of one composite: both versions, and by channel where they differ."""
    told: dict[str, Any] = {"stream": stream}
    values = []
    for name, ending in zip(SIDES, (before, after), strict=True):
        found = _values(ending)
        values.append(found)
        if ending is not None:
            told[name] = {"verdict": ending.verdict}
            if ending.document is None:
                told[name] |= {"message": ending.message} if ending.message else {}
            else:
                told[name] |= {"lastUpdate": ending.timestamp, "channels": found}
    first, second = values
    channels = sorted(
        name
        for name in first.keys() | second.keys()
        if name not in first or name not in second or not _same(first[name], second[name])
    )
    told["differences"] = [
        {"channel": name}
        | ({"before": first[name]} if name in first else {})
        | ({"after": second[name]} if name in second else {})
        for name in channels
    ]
    told["differs"] = bool(channels) or _how(before) != _how(after)
    return told


def _how(ending: Ending | None) -> tuple[str, int | None] | None:
    return None if ending is None else (ending.verdict, ending.timestamp)


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values are the same; true is not one."""
    return orjson.dumps(one, option=orjson.OPT_SORT_KEYS) == orjson.dumps(
        other, option=orjson.OPT_SORT_KEYS
    )


def _values(ending: Ending | None) -> dict[str, Any]:
    if ending is None or ending.document is None:
        return {}
    channels = orjson.loads(ending.document)["channels"]
    return {name: each.get("current-value") for name, each in channels.items()}


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
