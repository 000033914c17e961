"""`servioticy try`: what a changed document would have made of the last updates, as a table."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import Any

from command import shown
from command.remote import access, naming
from command.remote.documents import read_file, resolved
from servioticy.settings import Settings

Trial = Mapping[str, Any]
MOST_ROWS = 40
WIDEST = 40
"""Characters of a value in a table."""


def run(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print the differences, what both versions cost, and the warnings."""
    local = read_file(parsed.file)
    with access.rest(parsed, settings) as api:
        id_ = naming.service_object(local.name, api)
        ids = {name: ids[0] for name, ids in access.names(api).items() if len(ids) == 1}
        found = api.try_(id_, resolved(local.document, ids), parsed.last)
    if parsed.json:
        shown.say_json(found)
    else:
        shown.say(lines(found, id_, str(parsed.file)))
    return 0


def lines(found: Trial, service_object: str, file: str) -> list[str]:
    """Return what is told of a trial."""
    told = [f"version {found['version']} of {service_object} and {shown.plain(file)}"]
    rows = list(_rows(found, service_object))
    if rows:
        table = [("update", "stream", "channel", "before", "after"), *rows[:MOST_ROWS]]
        told += shown.columns(table)
    if len(rows) > MOST_ROWS:
        told.append(f"and {len(rows) - MOST_ROWS} more; --json shows all")
    told.append(f"{found['played']} updates played, {found['differing']} of them differ")
    told += _of_windows(found)
    told += [_cost(side, found[side]) for side in ("before", "after")]
    if why := found.get("truncated"):
        told.append(f"not all of it: {shown.plain(why)}")
    told += [f"not read: {shown.plain(each)}" for each in found.get("notRead", ())]
    return [*told, *(f"warning: {shown.plain(each)}" for each in found["warnings"])]


def _rows(found: Trial, service_object: str) -> Iterator[tuple[str, ...]]:
    """Yield a line for each channel that differs, or for a verdict that alone does."""
    for update in found["updates"]:
        for result in update["results"]:
            yield from _of_result(result, shown.moment(update["lastUpdate"]), service_object)
    for result in found.get("windows", {}).get("results", ()):
        at = shown.moment(result["lastUpdate"])
        yield from _of_result(result, f"{at}{_marks(result)}", service_object)


def _of_result(
    result: Mapping[str, Any], at: str, service_object: str
) -> Iterator[tuple[str, ...]]:
    if not result["differs"]:
        return
    stream = shown.plain(result["stream"].removeprefix(f"{service_object}/"))
    sides = [result.get(side) for side in ("before", "after")]
    if not result["differences"]:
        yield (at, stream, "", *map(_ending, sides))
    for each in result["differences"]:
        values = [
            _value(each[side]) if side in each else _ending(ending)
            for side, ending in zip(("before", "after"), sides, strict=True)
        ]
        yield (at, stream, shown.plain(each["channel"]), *values)


def _marks(result: Mapping[str, Any]) -> str:
    """Return which result of its windows it is, if not the one at their end."""
    if "early" in result:
        return f", early {result['revision']}"
    return f", revision {result['revision']}" if "revision" in result else ""


def _of_windows(found: Trial) -> list[str]:
    """Return what is told of windows: how many results differ, and what was left out."""
    windows = found.get("windows")
    if windows is None:
        return []
    told = [f"{len(windows['results'])} results of windows, {windows['differing']} of them differ"]
    left = windows["leftOut"]
    if any(left.values()):
        told.append(
            f"left out, as they may hold what was not played: {left['before']} windows before, "
            f"{left['after']} after"
        )
    return [*told, *(f"note: {shown.plain(each)}" for each in windows["notes"])]


def _ending(ending: Mapping[str, Any] | None) -> str:
    """Return how a computation ended that made no value."""
    if ending is None:
        return "none"
    if ending["verdict"] == "emitted":
        return f"at {ending['lastUpdate']}"
    message = f": {ending['message']}" if "message" in ending else ""
    return _short(f"{ending['verdict']}{message}")


def _value(value: Any) -> str:
    return _short(json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    plain = shown.plain(text)
    return plain if len(plain) <= WIDEST else f"{plain[: WIDEST - 2]}.."


def _cost(name: str, side: Mapping[str, Any]) -> str:
    verdicts = sorted(side["verdicts"].items(), key=lambda each: (-each[1], each[0]))
    told = ", ".join(f"{verdict} {count:,}" for verdict, count in verdicts) or "nothing computed"
    return f"{name}: {told}; {shown.number(side['processorMsPerUpdate'])} ms an update"
