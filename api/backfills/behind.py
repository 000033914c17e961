"""Windows, and all that is derived from them, one tree of history after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from api.backfills.trees import Stored
from api.replaying.replay import Means, Replay
from sandbox import TookTooLong
from sandbox.trees import Bounds, Event, Grown, Path
from servioticy.domain.evaluators.steps import Outcome
from servioticy.domain.evaluators.stepwise import TooMuch
from servioticy.domain.known_streams import Region
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.refusals import Refused

KEPT_BYTES = 64 * 1024 * 1024
"""That all windows keep together."""
SECONDS = 10.0
"""One computation may take so long."""


class Behind(Replay):
    """Takes what is before the span, too, of which nothing comes out."""

    def __init__(
        self, region: Region, lasts: Mapping[StreamRef, Stored], bounds: Bounds, means: Means
    ) -> None:
        known = {ref: LastUpdate(each.timestamp, each.document) for ref, each in lasts.items()}
        super().__init__(region, known, bounds, means)
        self._is_warming = False

    def within(self) -> float:
        """How many seconds one computation may take."""
        return SECONDS

    def passing(self, at: int) -> Iterator[tuple[Event, Grown]]:
        """Let time pass, as `pass_to` does. Raises Refused."""
        try:
            yield from self.pass_to(at)
        except (TookTooLong, TooMuch) as error:
            raise Refused(f"What is computed when {self.now} ms are due is too much") from error

    def grown(self, events: Sequence[Event]) -> Grown:
        """Return what comes of these. Raises Refused."""
        try:
            return self.tree(events)
        except TookTooLong as error:
            raise Refused(f"What is computed at {events[0].timestamp} takes too long") from error
        except TooMuch as error:
            at = events[0].timestamp
            raise Refused(f"What is computed at {at} is too much for one update") from error

    def warm(self, update: Stored, at: int, reach_back: Collection[StreamRef]) -> None:
        """Take an update from before the span, of that time, into those of the windows."""
        number = self.numbers.get(update.stream)
        self._is_warming = True
        for _each in self.passing(at):
            pass  # of what is before the span nothing comes out
        if number is not None:
            event = Event(number, update.timestamp, update.document)
            some = {self.numbers[each] for each in reach_back if each in self.numbers}
            wakes = {each.number: each.node for each in self.call.wiring.nodes[number].wakes}
            self.grown(
                [
                    each
                    for each in self.into_windows(event)
                    if each.only is not None and wakes.get(each.only, -1) in some | {-1}
                ]
                or [event._replace(only=-1)]
            )
        self._is_warming = False

    def decides(self, _node: int, _path: Path, outcome: Outcome, _seconds: float) -> Outcome:
        """What counts as the outcome."""
        return outcome._replace(made=()) if self._is_warming else outcome

    def tree(self, events: Sequence[Event]) -> Grown:
        """Return what comes of these, now. Raises Refused where too much is kept."""
        grown = super().tree(events)
        if self.kept_bytes > KEPT_BYTES:
            raise Refused(f"Its windows keep more than {KEPT_BYTES >> 20} MiB at a time")
        return grown
