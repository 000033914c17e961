"""Measurements read from files: steps with a start and an end."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from monitoring.model import Measurement, RuntimePerformance
from servioticy.errors import ServioticyError

MOST = 2_000_000
"""Steps that are read into memory."""
MAX_LINE = 64 * 1024


class TooMany(ServioticyError):
    """The files have more steps than are analysed at once; the message says what to do."""


class Step(NamedTuple):
    """A call of a step; times in ns since 1970."""

    purpose: str
    node: str
    start: int
    end: int
    sequence: str
    step: str = ""
    """the call's own id"""
    parent: str = ""
    """the step that it is a part of, of another machine perhaps"""


class Read(NamedTuple):
    """What files hold; `skipped` lines are no measurements, or one half of one."""

    steps: list[Step]
    skipped: int


def read(files: Iterable[Path], most: int = MOST) -> Read:
    """Return the steps of files of lines of JSON. Raises TooMany, OSError."""
    return read_lines(lines(files), most)


def read_lines(found: Iterable[bytes], most: int = MOST) -> Read:
    """Return the steps of lines of JSON that are told for themselves. Raises TooMany."""
    decoder = msgspec.json.Decoder(Measurement)
    steps: list[Step] = []
    begun: dict[tuple[str, str], list[int]] = {}
    ended: list[RuntimePerformance] = []
    skipped = halves = 0
    for line in found:
        try:
            measured = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeError):
            skipped += 1
            continue
        if not isinstance(measured, RuntimePerformance) or measured.for_links:
            continue
        purpose = measured.node.node_purpose
        if measured.end is None and measured.start is not None:
            begun.setdefault((purpose, measured.sequence), []).append(measured.start)
            halves += 1
        elif measured.start is None:
            ended.append(measured)
        elif measured.end is not None:
            node, sequence = measured.node.node_id, measured.sequence
            own = measured.step, measured.parent
            steps.append(Step(purpose, node, measured.start, measured.end, sequence, *own))
        if len(steps) + halves + len(ended) > most:
            raise TooMany(f"more than {most:,} steps: name fewer files, or sample less")
    for each in ended:
        starts = begun.get((each.node.node_purpose, each.sequence))
        if not starts or each.end is None or each.end < min(starts):
            skipped += 1
            continue
        start = max(at for at in starts if at <= each.end)
        starts.remove(start)
        steps.append(
            Step(each.node.node_purpose, each.node.node_id, start, each.end, each.sequence)
        )
    return Read(steps, skipped + sum(map(len, begun.values())))


def read_newest(files: Sequence[Path], most_bytes: int) -> Read:
    """Return the steps that stand last in files, the newest of which is last. Raises OSError."""
    parts, left = list[bytes](), most_bytes
    for file in reversed(files):
        with file.open("rb") as opened:
            size = opened.seek(0, os.SEEK_END)
            opened.seek(max(0, size - left))
            part = opened.read(left)
        if size > left:
            part = part.partition(b"\n")[2]  # its first line is a part of one
        parts.append(part)
        left -= size
        if left <= 0:
            break
    return read_lines(line for part in reversed(parts) for line in part.splitlines())


def lines(files: Iterable[Path]) -> Iterator[bytes]:
    """Yield the lines of each file; a part of one that is too long is no measurement."""
    for file in files:
        with file.open("rb") as opened:
            while line := opened.readline(MAX_LINE):
                yield line


def tails(files: Sequence[Path], most_bytes: int) -> Iterator[bytes]:
    """Yield the lines that stand last in files, of each an equal part of so many bytes.

    What is appended meanwhile is no part of that, and a file that has gone has none.
    """
    each = most_bytes // max(1, len(files))
    for file in files:
        try:
            opened = file.open("rb")
        except FileNotFoundError:
            continue
        with opened:
            left = min(opened.seek(0, os.SEEK_END), each)
            opened.seek(-left, os.SEEK_END)
            if opened.tell():
                left -= len(opened.readline(MAX_LINE))  # its first line is a part of one
            while left > 0 and (line := opened.readline(MAX_LINE)):
                left -= len(line)
                yield line
