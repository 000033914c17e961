"""`servioticy trace`: what became of an update, a line for each composite that it got to."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from command import shown
from command.remote import access, naming
from servioticy.settings import Settings

Trace = Mapping[str, Any]


def run(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print the tree of an update."""
    with access.rest(parsed, settings) as api:
        id_, stream = naming.stream_of(parsed.words, api)
        found = api.trace(id_, stream, parsed.at)
    if parsed.json:
        shown.say_json(found)
    else:
        shown.say(lines(found))
    return 0


def lines(found: Trace) -> list[str]:
    """Return what is told of a trace: what woke a composite stands above it, further left."""
    at = shown.moment(found["lastUpdate"])
    stored = _stored(found, found)
    told = [f"{shown.plain(found['stream'])}  {at}, version {found['version']}{stored}"]
    for step in found["steps"]:
        told += _of_step(step, found)
    if not found["steps"]:
        told.append("  nothing is computed from it")
    if found["hidden"]:
        told.append(f"  and {found['hidden']} composites of others")
    if found.get("complete") is False:
        told.append("not all of it was looked at")
    return told


def _stored(update: Mapping[str, Any], found: Trace) -> str:
    """When it was stored, after the update that it all comes of was accepted."""
    if "storedAt" not in update or "acceptedAt" not in found:
        return ""
    return f", stored after {update['storedAt'] - found['acceptedAt']} ms"


def _of_step(step: Mapping[str, Any], found: Trace) -> Iterator[str]:
    margin = "  " * step["depth"]
    yield (
        f"{margin}{shown.plain(step['stream'])}  {_ending(step)}  "
        f"by {shown.plain(step['triggeredBy'])} as {shown.plain(step['as'])}"
        f"{_stored(step, found)}"
    )
    if message := step.get("message"):
        yield f"{margin}  message  {shown.plain(message)}"
    if hint := step.get("hint"):
        yield f"{margin}  hint     {shown.plain(hint)}"
    for each in step.get("inputs", ()):
        age = f", {each['age']} older" if each.get("age") else ""
        at = "no update" if each["lastUpdate"] is None else f"{each['lastUpdate']}{age}"
        yield f"{margin}  read     {shown.plain(each['as'])}: {at}"


def _ending(step: Mapping[str, Any]) -> str:
    if step["verdict"] is not None:
        return str(step["verdict"])
    may_be = ", ".join(step.get("mayBe", ()))
    return f"no output ({may_be})" if may_be else "no output"
