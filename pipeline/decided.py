"""What subscribers have got already of a part of the log that is computed again.

Commits do not wait for the disk, and emission follows at once: a Postgres that is killed may
forget what was emitted. Computed again, a script near its budget may end otherwise. So what
was emitted counts: each update says of which place in the serial order it is, those that
come after stored progress are read back, and the computations up to the last of them end as
they did then. They were emitted in that order, so it is known of each place before the last
one whether anything came of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipeline.journal import Place
from pipeline.stages.fetch import Fold
from sandbox.program import Fault, Outcome, Value
from servioticy.messaging.records import EmittedRecord
from servioticy.model import StreamRef

NOTHING_THEN = Fault("timeout", "computed again after a crash: nothing came of it the first time")


class Decided:
    """The outcomes that subscribers know, up to a place."""

    def __init__(self, emitted: Iterable[EmittedRecord] = ()) -> None:
        self._values: dict[tuple[StreamRef, Place], Value] = {}
        for each in emitted:
            if each.place is not None:
                offset, depth, *path = each.place
                ref = StreamRef(each.service_object, each.stream)
                value = Value(each.timestamp, bytes(each.update))
                self._values[ref, Place(offset, depth, tuple(path))] = value
        self._last = max((place for _ref, place in self._values), default=None)

    def covers(self, offset: int) -> bool:
        """Whether anything made from this offset, or from a later one, is known already.

        If so, its tree has to be computed one step at a time: each depends on the one before.
        """
        return self._last is not None and offset <= self._last.offset

    def outcomes(self, fold: Fold, outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
        """The outcomes of the fold's steps as subscribers know them, where they do."""
        last = self._last
        if last is None or fold.asked[0].step.place > last:
            return outcomes
        return [
            self._outcome(fold.composite, asked.step.place, outcome)
            for asked, outcome in zip(fold.asked, outcomes, strict=True)
        ]

    def _outcome(self, composite: StreamRef, place: Place, outcome: Outcome) -> Outcome:
        if self._last is None or place > self._last:
            return outcome
        known = self._values.get((composite, place))
        if known is None and isinstance(outcome, Value):
            return NOTHING_THEN
        return known or outcome
