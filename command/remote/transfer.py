"""`servioticy get`, `put`, `history`, `export` and `import`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from command.remote import access, naming, progress
from servioticy.client import BatchResult, Rest, batches, calls
from servioticy.errors import ServioticyError, SettingsError
from servioticy.settings import Settings

MAX_TOLD = 20
"""Refused updates that are shown one by one."""
READ_BYTES = 1 << 20
"""Of standard input at once."""


def get(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print a document, or the newest update of a stream."""
    with access.rest(parsed, settings) as api:
        id_, stream = naming.object_or_stream(parsed.words, api)
        if stream is None:
            _print(json.dumps(api.read(id_).document, indent=2, ensure_ascii=False))
            return 0
        found = api.last_update(id_, stream)
    if found is None:
        raise ServioticyError(f"nothing is stored of {stream} yet")
    _print(_line(found))
    return 0


def put(parsed: argparse.Namespace, settings: Settings) -> int:
    """Send an update made of options, or those on standard input, a line each."""
    names, values = _apart(parsed)
    channels = dict(map(_channel, values))
    with _of(names, parsed, settings) as (api, id_, stream):
        if channels:
            at = round(time.time() * 1000) if parsed.at is None else parsed.at
            api.put(id_, stream, {"channels": channels, "lastUpdate": at})
            return 0
        result = BatchResult(0)
        for first, batch in _standard_input():
            found = api.put_many(id_, stream, batch)
            result = _told(result, found, first, "line")
    return _ended(result)


def history(parsed: argparse.Namespace, settings: Settings) -> int:
    """Print the updates between two timestamps, a line each."""
    left = parsed.limit
    with _of(parsed.words, parsed, settings) as (api, id_, stream):
        bounds = (parsed.after, parsed.before, parsed.newest_first)
        for update in api.history(id_, stream, *bounds, min(left or 1000, 1000)):
            if left is not None and left <= 0:
                break
            left = None if left is None else left - 1
            _print(_line(update))
    return 0


def export(parsed: argparse.Namespace, settings: Settings) -> int:
    """Write a stream's history to a file, which is there when it is whole."""
    form = parsed.format or (parsed.output.suffix.lstrip(".") if parsed.output else "ndjson")
    if form not in ("csv", "ndjson", "parquet", "arrow"):
        raise SettingsError("give --format: csv, ndjson, parquet or arrow")
    with (
        _of(parsed.words, parsed, settings) as (api, id_, stream),
        progress.shown("export", None) as advanced,
    ):
        path = calls.export_path(id_, stream, form, parsed.after, parsed.before)
        with _written_to(parsed.output) as file:
            done = 0
            for part in api.download(path):
                done += file.write(part)
                advanced(done, "")
    return 0


def import_(parsed: argparse.Namespace, settings: Settings) -> int:
    """Send the updates of a CSV or Parquet file; what is refused is told."""
    from command.remote import files

    result = BatchResult(0)
    *names, last = parsed.words
    file = Path(last)
    with _of(names, parsed, settings) as (api, id_, stream):
        size = file.stat().st_size if file.is_file() else None
        sent = 0
        with progress.shown(f"import {file.name}", size) as advanced:
            for batch in files.batches(file):
                call = batches.of_csv(id_, stream, batch.content, sent)
                result = _told(result, api.run(call), 0, "row")
                sent += batch.rows
                advanced(batch.read, f"{result.accepted} updates")
    return _ended(result)


@contextmanager
def _of(
    names: Sequence[str], parsed: argparse.Namespace, settings: Settings
) -> Iterator[tuple[Rest, str, str]]:
    """Hand out a client, and Service Object and stream that the words name."""
    with access.rest(parsed, settings) as api:
        yield api, *naming.stream_of(names, api)


def _apart(parsed: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the names at the beginning, and the values: what follows them."""
    ends = (at for at, each in enumerate(parsed.words) if "=" in each)
    count = min(next(ends, 2), 2)
    if not count:
        parsed.refuse("name a stream, or Service Object and stream, before CHANNEL=VALUE")
    return parsed.words[:count], parsed.words[count:]


def _channel(pair: str) -> tuple[str, dict[str, Any]]:
    """Read CHANNEL=VALUE: the value as JSON where it is some, else as text."""
    name, equals, text = pair.partition("=")
    if not equals:
        raise SettingsError(f"{pair!r} is not of the form CHANNEL=VALUE")
    try:
        return name, {"current-value": json.loads(text)}
    except ValueError:
        return name, {"current-value": text}


def _standard_input() -> Iterator[tuple[int, list[Any]]]:
    """Yield the updates of standard input as they come, with the place of the first of each lot.

    Nothing waits for what comes later, and what has come together is sent together.
    """
    first, rest = 0, b""
    while part := os.read(sys.stdin.fileno(), READ_BYTES):
        *lines, rest = (rest + part).split(b"\n")
        yield first, [_parsed(line, first + place) for place, line in enumerate(lines)]
        first += len(lines)
    if rest:
        yield first, [_parsed(rest, first)]


def _parsed(line: bytes, place: int) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ServioticyError(f"line {place} is not JSON: {error}") from error


def _told(before: BatchResult, found: BatchResult, first: int, what: str) -> BatchResult:
    """Tell what was refused, the first of it one by one, and return both together."""
    for number, each in enumerate(found.refused, start=len(before.refused)):
        if number < MAX_TOLD:
            at = f" (at {each.pointer})" if each.pointer else ""
            sys.stderr.write(f"{what} {first + each.index} refused: {each.reason}{at}\n")
    return before + found


def _ended(result: BatchResult) -> int:
    refused = len(result.refused)
    sys.stderr.write(f"{result.accepted} accepted, {refused} refused\n")
    return 1 if refused else 0


@contextmanager
def _written_to(output: Path | None) -> Iterator[BinaryIO]:
    """Hand out a file that gets its name when all is written; without one, standard output."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    partial = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with partial.open("wb") as file:
            yield file
        partial.replace(output)
    except OSError as error:
        raise ServioticyError(f"{output} cannot be written: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def _line(update: Any) -> str:
    return json.dumps(update, separators=(",", ":"))


def _print(text: str) -> None:
    # Half a surrogate pair is no text that a terminal takes.
    sys.stdout.write(text.encode(errors="backslashreplace").decode() + "\n")
