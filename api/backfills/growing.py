"""What composites make of trees of history: the engine's own evaluator, all of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from api.backfills.region import Concerned
from api.backfills.trees import Stored, Tree
from sandbox import TookTooLong
from sandbox.trees import Bounds, Call, Event, Last, Made
from servioticy.domain.evaluators.evaluator import Evaluator
from servioticy.domain.model import LastUpdate, StreamRef, Timestamp
from servioticy.domain.timing import becomes_last
from servioticy.refusals import Refused

SECONDS = 10.0
"""Some trees together may take so long; then fewer are taken at once."""


class NewRow(NamedTuple):
    """An update of a composite, and the place in the log that it is stored with."""

    stream: StreamRef
    timestamp: Timestamp
    version: int
    log_partition: int
    log_offset: int
    log_position: int
    document: bytes


class Growing:
    """Goes on from the last updates that there were before."""

    def __init__(
        self,
        concerned: Concerned,
        lasts: Mapping[StreamRef, LastUpdate],
        bounds: Bounds,
        evaluator: Evaluator,
        tenant: int,
    ) -> None:
        self._region = concerned.region()
        self._bounds = bounds
        self._evaluator = evaluator
        self._tenant = str(tenant)
        streams = enumerate(self._region.streams)
        self._numbers = {each.ref: number for number, each in streams if each is not None}
        self._lasts = {
            number: Last(number, *lasts[ref][:2])
            for ref, number in self._numbers.items()
            if ref in lasts
        }

    def grow(self, trees: Sequence[Tree]) -> list[NewRow]:
        """Return what comes of them. Raises Refused where code is too slow, or makes too much."""
        rows: dict[tuple[StreamRef, Timestamp], NewRow] = {}
        waiting = [trees]
        while waiting:
            some = waiting.pop()
            try:
                made = self._made(some)
            except TookTooLong as error:
                if len(some) == 1:
                    at = some[0][0].update.timestamp
                    raise Refused(f"What is computed at {at} takes too long") from error
                half = len(some) // 2
                waiting += [some[half:], some[:half]]
                continue
            for tree, theirs in zip(some, made, strict=True):
                self._take(tree, theirs, rows)
        return list(rows.values())

    def _made(self, some: Sequence[Tree]) -> Sequence[Sequence[Made]]:
        events = [[self._event(entry.update, entry.path) for entry in tree] for tree in some]
        call = Call(
            self._region.wiring,
            self._region.names,
            list(self._lasts.values()),
            events,
            self._bounds,
        )
        (grown,) = self._evaluator.evaluate(self._tenant, [call], SECONDS)
        if grown.failed:
            at = some[len(grown.made)][0].update.timestamp
            raise Refused(f"What is computed at {at} is too much for one update")
        return grown.made

    def _event(self, update: Stored, path: tuple[int, ...]) -> Event:
        return Event(self._numbers[update.stream], update.timestamp, update.document, path)

    def _take(
        self,
        tree: Tree,
        made: Sequence[Made],
        rows: dict[tuple[StreamRef, Timestamp], NewRow],
    ) -> None:
        for update, _path in tree:
            self._becomes(Last(self._numbers[update.stream], update.timestamp, update.document))
        root = tree[0].update
        behind = 1 + max(each.update.log_position for each in tree)
        for position, each in enumerate(made, behind):
            stream = self._region.stream(each.node)
            place = root.log_partition, root.log_offset, position
            ref = StreamRef(*stream.ref)
            rows[ref, each.timestamp] = NewRow(
                ref, each.timestamp, stream.version, *place, each.document
            )
            self._becomes(Last(each.node, each.timestamp, each.document))

    def _becomes(self, new: Last) -> None:
        last = self._lasts.get(new.node)
        if last is None or becomes_last(new.timestamp, last.timestamp):
            self._lasts[new.node] = new
