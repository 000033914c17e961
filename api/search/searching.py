"""What a search is asked, and its steps, wherever they are computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from api.search.blocks import Blocks, Kept
from api.search.walk import Walk
from servioticy.domain.model import StreamKey
from servioticy.domain.search.criteria import Criteria
from servioticy.ports.history import History
from servioticy.ports.statements import Statements

ROOM = 64 * 1024 * 1024
"""Bytes of blocks that a process remembers."""
ROOM_FOR_BOUNDS = 8 * 1024 * 1024


class Search(NamedTuple):
    """Which updates are wanted, of what stream, and which tenant asks."""

    stream: StreamKey
    criteria: Criteria
    caller: int


class Step(NamedTuple):
    """What a step has found, and what it took of the processor of another process."""

    documents: bytes
    """joined by commas; empty: none"""
    seconds: float = 0.0


class Searches(Protocol):
    """Where searches are computed; those who ask take turns, one step at a time."""

    def steps(self, search: Search) -> Iterator[Step]:
        """Begin a search, and yield it step by step.

        Raises Unavailable: also in the middle, where what computes it has ended.
        """


class SearchesHere:
    """Computes them in the thread that asks."""

    def __init__(self, history: History, stored: Statements) -> None:
        self._history = history
        self._stored = stored
        self._kept = Kept(ROOM, ROOM_FOR_BOUNDS)

    def steps(self, search: Search) -> Iterator[Step]:
        """Yield what fits, some milliseconds' worth at a time."""
        conditions = search.criteria.conditions
        blocks = Blocks(self._stored, self._kept, search.stream, conditions)
        walk = Walk(self._history, self._stored, search.stream, blocks, search.criteria)
        for some in walk.found():
            yield Step(b",".join(each.document for each in some))
