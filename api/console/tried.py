"""What a trial tells, as lines of a table: each channel that differs, and verdicts in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from api.console.showing import value
from servioticy.domain.verdicts import EMITTED, VERDICTS

SHOWN = 200
WIDEST = 200
"""Characters of a value."""
WIDEST_ENDING = 600
"""Of how a computation ended: the message of an error has its place at the end."""


class Row(NamedTuple):
    """A channel of which both versions made something else of an update, or of windows."""

    at: int
    stream: str
    channel: str
    before: str
    after: str
    mark: str = ""
    """Which result of its windows it is, if not the one at their end."""


def rows(tried: Mapping[str, Any], service_object: str) -> list[Row]:
    """Return the first of them."""
    return [row for row, _ in zip(_rows(tried, service_object), range(SHOWN), strict=False)]


def _rows(tried: Mapping[str, Any], service_object: str) -> Iterator[Row]:
    for update in tried["updates"]:
        for result in update["results"]:
            yield from _of_result(result, update["lastUpdate"], service_object)
    for result in tried.get("windows", {}).get("results", ()):
        yield from _of_result(result, result["lastUpdate"], service_object)


def _of_result(result: Mapping[str, Any], at: int, service_object: str) -> Iterator[Row]:
    if not result["differs"]:
        return
    stream = result["stream"].removeprefix(f"{service_object}/")
    sides = [result.get(side) for side in ("before", "after")]
    mark = _mark(result)
    if not result["differences"]:
        before, after = map(_ending, sides)
        yield Row(at, stream, "", before, after, mark)
    for each in result["differences"]:
        before, after = [
            value(each[side])[:WIDEST] if side in each else _ending(ending)
            for side, ending in zip(("before", "after"), sides, strict=True)
        ]
        yield Row(at, stream, each["channel"], before, after, mark)


def _mark(result: Mapping[str, Any]) -> str:
    if "revision" not in result:
        return ""
    kind = next((each for each in ("retracted", "early") if each in result), "revision")
    return f"{kind} {result['revision']}"


def _ending(ending: Mapping[str, Any] | None) -> str:
    """Return how a computation ended of which there is no such value."""
    if ending is None:
        return "not computed"
    verdict = ending["verdict"]
    if verdict == EMITTED:
        return f"an update of {ending['lastUpdate']}"
    means = VERDICTS.get(verdict, "").replace("`", "")
    message = f" ({ending['message']})" if ending.get("message") else ""
    return f"{verdict}: {means}{message}"[:WIDEST_ENDING]
