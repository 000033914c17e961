"""`servioticy status`: how computations of streams ended; without a stream, of the platform."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from command import shown
from command.remote import access, naming
from servioticy.client import Rest
from servioticy.errors import SettingsError
from servioticy.settings import Settings

Status = Mapping[str, Any]
STREAMS_AT_ONCE = 1_000
"""So many newest updates may be asked for at once (docs/limits.md)."""


def run(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print the state of a stream, of a Service Object's streams, or of the platform."""
    if not parsed.words:
        if parsed.url or parsed.token:
            raise SettingsError(
                "--url and --token ask for a Service Object or stream, name one; without, it is "
                "the platform on the data folder"
            )
        from command import state  # of no use to who asks for a stream

        return state.run(settings, parsed.json)
    with access.rest(parsed, settings) as api:
        id_, stream = naming.object_or_stream(parsed.words, api)
        if stream is None:
            _object(id_, api, parsed.json)
        else:
            found = api.status(id_, stream)
            _print(found, of_stream(id_, stream, found), parsed.json)
    return 0


def of_stream(service_object: str, stream: str, found: Status) -> list[str]:
    """Return what is told of one stream: its verdicts, the newest of them first."""
    lines = [f"{shown.plain(stream)} of {service_object}: {_state(found)}"]
    if why := found.get("suspended", {}).get("why"):
        lines.append(f"  code of {shown.plain(found['suspended']['stream'])}: {shown.plain(why)}")
    lines.append(f"  processor time {shown.number(found['cpu-seconds'])} s")
    if not found["verdicts"]:
        return [*lines, "  nothing was computed"]
    for each in sorted(found["verdicts"], key=lambda each: -each["last"].get("timestamp", 0)):
        lines += _of_verdict(each)
    return lines


def _of_verdict(each: Mapping[str, Any]) -> list[str]:
    last = each["last"]
    version = f", version {last['version']}" if "version" in last else ""
    at = shown.moment(last["timestamp"]) if "timestamp" in last else "not known"
    lines = [f"{each['verdict']}  {each['count']:,}", f"  last     {at}{version}"]
    if message := last.get("message"):
        lines.append(f"  message  {shown.plain(str(message))}")
    if hint := last.get("hint"):
        lines.append(f"  hint     {shown.plain(str(hint))}")
    if inputs := last.get("inputs"):
        lines.append(f"  inputs   {json.dumps(inputs)}")
    return lines


def of_object(rows: Mapping[str, tuple[Status, Mapping[str, Any] | None]]) -> list[str]:
    """Return a line for each stream: its state, its verdicts, its newest update."""
    table = [("stream", "newest update", "state", "computations")]
    for stream, (found, update) in rows.items():
        newest = "none" if update is None else shown.moment(update["lastUpdate"])
        verdicts = sorted(found["verdicts"], key=lambda each: -each["count"])
        told = ", ".join(f"{each['verdict']} {each['count']:,}" for each in verdicts)
        table.append((shown.plain(stream), newest, _state(found), told or "none"))
    return shown.columns(table)


def _object(service_object: str, api: Rest, as_json: bool) -> None:
    streams = list(api.read(service_object).document.get("streams", {}))
    refs = [(service_object, each) for each in streams]
    newest: list[dict[str, Any] | None] = []
    for first in range(0, len(refs), STREAMS_AT_ONCE):
        newest += api.last_updates(refs[first : first + STREAMS_AT_ONCE])
    rows = {
        stream: (api.status(service_object, stream), update)
        for stream, update in zip(streams, newest, strict=True)
    }
    told = {
        stream: {**found, "lastUpdate": None if update is None else update["lastUpdate"]}
        for stream, (found, update) in rows.items()
    }
    _print(told, of_object(rows), as_json)


def _state(found: Status) -> str:
    until = found.get("suspended", {}).get("until")
    return f"{found['state']} until {until}" if until else str(found["state"])


def _print(value: Any, lines: list[str], as_json: bool) -> None:
    if as_json:
        shown.say_json(value)
    else:
        shown.say(lines)
