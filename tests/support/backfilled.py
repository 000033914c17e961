"""What a memory platform has stored, and what a backfill of it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from memory import MemoryPlatform

from api.backfills.growing import Growing
from api.backfills.region import Concerned
from api.backfills.span import span_of
from api.backfills.trees import Stored, merged, trees
from api.replaying.replay import Means
from sandbox import argument_names
from sandbox.trees import Bounds
from servioticy.domain.evaluators.evaluator import Evaluator
from servioticy.domain.evaluators.every import operators
from servioticy.domain.model import StreamRef

NO_BOUNDS = Bounds(10**6, 10**6)


class World:
    """What a platform has stored, and a backfill of it."""

    def __init__(
        self,
        platform: MemoryPlatform,
        ids: Sequence[str],
        filled: StreamRef,
        value_of: Callable[[bytes], int],
    ) -> None:
        store = platform.partition_store(argument_names)
        self.concerned = Concerned(list(store.service_objects(ids)), filled)
        self._value_of = value_of
        names = {number: StreamRef(*ref) for ref, number in platform.state.streams.items()}
        self.rows = sorted(
            Stored(
                row.timestamp,
                names[row.stream_id],
                row.document,
                partition,
                row.offset,
                row.position,
            )
            for partition, row in platform.state.updates.values()
        )

    def computed(self, since: int, until: int) -> dict[tuple[StreamRef, int], int]:
        """What is stored of the span that a backfill would compute."""
        return {
            (each.stream, each.timestamp): self._value_of(each.document)
            for each in self.rows
            if each.stream in self.concerned.computed
            and each.log_position
            and since <= each.timestamp < until
        }

    def filled(
        self, since: int, until: int, at_once: int, evaluator: Evaluator, now: int = 0
    ) -> dict[tuple[StreamRef, int], int]:
        """What a backfill makes of the span, so many trees at once; `now` is in seconds."""
        span = span_of(since, until, self.concerned.windows.values(), now * 1000)
        lasts: dict[StreamRef, Stored] = {}
        for each in self.rows:
            if each.timestamp < span.reads_since:
                lasts[each.stream] = each
        read = self.concerned.read
        histories = [
            [
                each
                for each in self.rows
                if each.stream == ref
                and span.reads_since <= each.timestamp < span.reads_until
                and (ref in read or not each.log_position or each.timestamp < since)
            ]
            for ref in self.concerned.streams
        ]
        paths = cache(self.concerned.paths)
        every = [tree for some in merged(histories) for tree in trees(some, paths)]
        means = Means("1", evaluator, operators())
        growing = Growing(self.concerned, lasts, span, NO_BOUNDS, means)
        frames = [every[first : first + at_once] for first in range(0, len(every), at_once)]
        every_rows = [rows for some in frames for rows in growing.grow(some)]
        return {
            (row.stream, row.timestamp): self._value_of(row.document)
            for rows in (*every_rows, *growing.finish())
            for row in rows
        }
