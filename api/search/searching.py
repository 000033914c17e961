"""What a search is asked, and its steps, wherever they are computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from api.search.blocks import Blocks, Kept
from api.search.walk import Walk
from api.stepping.step import Step, Steps
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


Searches: TypeAlias = Steps[Search]
"""Where searches are computed; those who ask take turns, one step at a time."""


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
