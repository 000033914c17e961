"""Stored updates as the trees that they came in, in the order of history.

That is by timestamp, and then by stream. What came because of one record of the log is one tree
again: a composite that reads both an update and what was made of it computes as it would have.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from sandbox.trees import ROOT, Path
from servioticy.domain.model import StreamRef, Timestamp

Paths = Mapping[StreamRef, Path]


class Stored(NamedTuple):
    """An update as it is stored, and where in the log it has come from."""

    timestamp: Timestamp
    stream: StreamRef
    document: bytes
    log_partition: int
    log_offset: int
    log_position: int
    """In its tree; 0: it has come from outside."""

    def of_outside(self, partition: int) -> Stored:
        """Return the same as if it stood in this partition, before all that the log has there.

        What is made of it bears its place, by which nobody is to be sent it once more.
        """
        offset = -1 - (abs(self.log_offset) << 10 | self.log_partition & 1023)
        return self._replace(log_partition=partition, log_offset=offset)

    @property
    def root(self) -> tuple[int, int]:
        """The record because of which it is there."""
        return self.log_partition, self.log_offset


class Entry(NamedTuple):
    """An update in its tree."""

    update: Stored
    path: Path


Tree = Sequence[Entry]


def merged(histories: Iterable[Iterable[Stored]]) -> Iterator[list[Stored]]:
    """Yield what has the same timestamp, the oldest first; each history is in order."""
    ordered = heapq.merge(*histories, key=attrgetter("timestamp", "stream"))
    for _timestamp, some in groupby(ordered, key=attrgetter("timestamp")):
        yield list(some)


def trees(some: Sequence[Stored], paths_from: Callable[[StreamRef], Paths]) -> list[Tree]:
    """Return these, which have one timestamp, as trees: in the order of their first streams."""
    by_root: dict[tuple[int, int], list[Stored]] = {}
    for each in some:
        by_root.setdefault(each.root, []).append(each)
    return [_tree(each, paths_from) for each in by_root.values()]


def _tree(some: list[Stored], paths_from: Callable[[StreamRef], Paths]) -> Tree:
    some.sort(key=attrgetter("log_position"))
    first = some[0]
    paths: Paths = {} if first.log_position else paths_from(first.stream)
    begin = paths.get(first.stream, ROOT)
    entries = [Entry(each, paths.get(each.stream, (each.log_position, *begin))) for each in some]
    return sorted(entries, key=lambda each: (len(each.path), each.path))
