"""The blocks of a searched stream: what is stored of them, and how one more is stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import orjson

from api.search import columns
from servioticy.domain.cache import Cache
from servioticy.domain.model import StreamKey, Timestamp
from servioticy.domain.search.criteria import Condition
from servioticy.ports.history import VersionedUpdate
from servioticy.ports.statements import Statements

ROWS = 2_048
"""Updates of a block, and up to twice as many where late ones came into it."""
PLANNED = 500
"""Blocks looked up at once."""
TIMESTAMPS = "timestamps"

BOUNDS_BYTES = 500
"""About as much memory the bounds of a column take."""

LISTED_BYTES = 200
"""About as much memory a block in a list takes."""

Bounds = dict[str, list[float]]
Listed = list[tuple[int, Timestamp, Timestamp]]


class Kept:
    """What a process remembers of blocks, by their number and what it is.

    Numbers are not given twice, and a block never changes.
    """

    def __init__(self, room: int, room_for_bounds: int) -> None:
        self.contents: Cache[tuple[int, str], bytes] = Cache(room)
        self.bounds: Cache[tuple[int, str], list[float]] = Cache(room_for_bounds)
        self.lists: Cache[tuple[int, int, Timestamp, Timestamp], Listed] = Cache(room_for_bounds)
        """Of blocks, by the stream's number, how often its blocks had changed, and the span."""


@dataclass(frozen=True, slots=True)
class Block:
    """Updates with timestamps larger than `after`, up to `upto`, and the columns they have."""

    id: int
    after: Timestamp
    upto: Timestamp
    bounds: Bounds


@dataclass(slots=True)
class Plan:
    """The blocks of a stream as they were at one moment."""

    number: int
    """under which the stream is stored"""
    changes: int
    blocks: list[Block]
    complete: bool
    """whether there are no more of them in the span"""
    stale: bool = False
    """whether somebody has changed the blocks since"""


@dataclass(slots=True)
class Rows:
    """Updates that are looked at one by one, as a block will have them."""

    timestamps: list[Timestamp] = field(default_factory=list)
    essences: list[list[Any]] = field(default_factory=list)
    """of the values that the conditions are about; never the values, which may be long"""

    def cut(self, count: int) -> Rows:
        """Take the first ones out."""
        first = Rows(self.timestamps[:count], self.essences[:count])
        del self.timestamps[:count], self.essences[:count]
        return first


class Blocks:
    """The blocks of one stream, for the conditions of one search."""

    def __init__(
        self, stored: Statements, kept: Kept, stream: StreamKey, conditions: Sequence[Condition]
    ) -> None:
        self._stored = stored
        self._kept = kept
        self._stream = stream
        self.conditions = {columns.subject(each): each for each in conditions}

    def look(self, update: VersionedUpdate, rows: Rows) -> bool:
        """Tell whether all conditions hold for an update, and add it to the rows."""
        channels = orjson.loads(update.document)["channels"]
        essences, holds = [], True
        for condition in self.conditions.values():
            value = channels.get(condition.channel, {}).get("current-value")
            essences.append(columns.essence(condition, value))
            holds = holds and condition.holds(value)
        rows.timestamps.append(update.timestamp)
        rows.essences.append(essences)
        return holds

    def plan(self, first: Timestamp, last: Timestamp) -> Plan | None:
        """Return the next blocks of a span; None: the stream is gone."""
        state = self._stored.row("searched", **self._stream._asdict())
        if state is None:
            self._stored.rows("begin", **self._stream._asdict())
            state = self._stored.row("searched", **self._stream._asdict())
        if state is None:
            return None
        number, changes = state
        rows = self._listed(number, changes, first, last)
        bounds = self._bounds([id_ for id_, _, _ in rows])
        found = [Block(id_, after, upto, bounds[id_]) for id_, after, upto in rows]
        return Plan(number, changes, found, len(found) < PLANNED)

    def _listed(self, number: int, changes: int, first: Timestamp, last: Timestamp) -> Listed:
        """Return the next blocks: number, and where they begin and end.

        As long as nothing changes they are the same.
        """
        key = (number, changes, first, last)
        rows = self._kept.lists.get(key)
        if rows is None:
            span = {"first": first, "last": last, "most": PLANNED}
            rows = self._stored.rows("blocks", tenant=self._stream.tenant, number=number, **span)
            self._kept.lists.put(key, rows, (len(rows) + 1) * LISTED_BYTES)
        return rows

    def _bounds(self, blocks: Sequence[int]) -> dict[int, Bounds]:
        """Return the bounds of those of the wanted columns that each block has."""
        found: dict[int, Bounds] = {id_: {} for id_ in blocks}
        lacking = set[int]()
        for id_, name in product(blocks, self.conditions):
            bounds = self._kept.bounds.get((id_, name))
            if bounds is None:
                lacking.add(id_)
            else:
                found[id_][name] = bounds
        if lacking:
            values = {"blocks": sorted(lacking), "subjects": list(self.conditions)}
            rows = self._stored.rows("bounds", tenant=self._stream.tenant, **values)
            for id_, name, bounds in rows:
                found[id_][name] = bounds
                self._kept.bounds.put((id_, name), bounds, BOUNDS_BYTES)
        return found

    def lacks(self, block: Block) -> bool:
        """Tell whether a block lacks a column that this search needs."""
        return not self.conditions.keys() <= block.bounds.keys()

    def candidates(
        self, blocks: Sequence[Block], first: Timestamp, last: Timestamp
    ) -> columns.Times | None:
        """Return the timestamps of those updates that may fit; None: a block has gone."""
        wanted = [each for each in blocks if self._may_hold(each)]
        subjects = list(self.conditions)
        codes = self._contents([(each.id, name) for each in wanted for name in subjects])
        times = self._contents([(each.id, TIMESTAMPS) for each in wanted])
        if codes is None or times is None:
            return None
        alike: defaultdict[int, list[Block]] = defaultdict(list)
        for each in wanted:
            alike[len(times[each.id, TIMESTAMPS]) // 8].append(each)
        found: dict[int, columns.Times] = {}
        for rows, some in alike.items():
            mask = self._mask(some, codes, rows)
            for number, has_any in enumerate(columns.with_candidates(mask)):
                if has_any:
                    content = times[some[number].id, TIMESTAMPS]
                    found[some[number].upto] = columns.chosen(content, mask[number], first, last)
        return columns.joined([found[upto] for upto in sorted(found)])

    def _may_hold(self, block: Block) -> bool:
        return all(
            columns.may_hold(condition, block.bounds[name])
            for name, condition in self.conditions.items()
        )

    def _mask(
        self, blocks: Sequence[Block], codes: dict[tuple[int, str], bytes], rows: int
    ) -> columns.Mask:
        return columns.both(
            [
                columns.candidates(
                    condition,
                    [each.bounds[name] for each in blocks],
                    [codes[each.id, name] for each in blocks],
                    rows,
                )
                for name, condition in self.conditions.items()
            ]
        )

    def _contents(self, keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], bytes] | None:
        """Return what these parts of blocks hold; None where a block has gone meanwhile."""
        found = {
            key: content for key in keys if (content := self._kept.contents.get(key)) is not None
        }
        missing = [key for key in keys if key not in found]
        if missing:
            for key, content in self._stored_contents(missing):
                found[key] = content
                self._kept.contents.put(key, content, len(content) + 200)
        return found if found.keys() >= set(keys) else None

    def _stored_contents(
        self, keys: Sequence[tuple[int, str]]
    ) -> Iterator[tuple[tuple[int, str], bytes]]:
        ids = sorted({id_ for id_, _ in keys})
        values: dict[str, Any] = {"blocks": ids, "tenant": self._stream.tenant}
        if keys[0][1] == TIMESTAMPS:
            for id_, content in self._stored.rows("timestamps", **values):
                yield (id_, TIMESTAMPS), bytes(content)
            return
        subjects = sorted({name for _, name in keys})
        for id_, name, content in self._stored.rows("columns", **values, subjects=subjects):
            yield (id_, name), bytes(content)

    def add(self, plan: Plan, after: Timestamp, upto: Timestamp, rows: Rows) -> None:
        """Store all updates after one timestamp, up to another, as a block.

        Not where anybody has changed the blocks since: then the plan is stale.
        """
        if plan.stale:
            return
        found = self._stored.row(
            "add_block",
            number=plan.number,
            changes=plan.changes,
            tenant=self._stream.tenant,
            after=after,
            upto=upto,
            timestamps=columns.timestamps(rows.timestamps),
            **self._columns(rows, list(self.conditions)),
        )
        if found is None:
            plan.stale = True
        else:
            plan.changes = found[0]

    def complete(self, block: Block, rows: Rows) -> None:
        """Store the columns that a block lacks; `rows` are all of its updates."""
        lacking = [each for each in self.conditions if each not in block.bounds]
        self._stored.rows(
            "add_columns",
            block=block.id,
            tenant=self._stream.tenant,
            **self._columns(rows, lacking),
        )

    def _columns(self, rows: Rows, subjects: Sequence[str]) -> dict[str, list[Any]]:
        bounds, codes = [], []
        for place, (name, condition) in enumerate(self.conditions.items()):
            if name in subjects:
                its = columns.column(condition, [each[place] for each in rows.essences])
                bounds.append("{" + ",".join(map(repr, its[0])) + "}")
                codes.append(its[1])
        return {"subjects": list(subjects), "bounds": bounds, "codes": codes}
