"""A region that takes history, one tree after the other, and the times that come between them.

It is the interpreter that takes one computation after the other
(`servioticy/domain/evaluators/stepwise.py`). The log's time is that of the updates, and never goes
back; what operators have set themselves for it comes between two trees, as the log would have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import thread_time
from typing import NamedTuple

from api.replaying.moments import DueTimes
from sandbox.trees import NOBODY, Bounds, Call, Event, Grown, Kept, Last, Wake
from servioticy.domain.evaluators.evaluator import Evaluator
from servioticy.domain.evaluators.operators import Computation, Operators
from servioticy.domain.evaluators.steps import Outcome
from servioticy.domain.evaluators.stepwise import KeptBefore, Stepwise
from servioticy.domain.known_streams import Region
from servioticy.domain.model import ClockRef, LastUpdate, StreamRef

ENTRY = 100
"""Bytes of memory for an entry, beside its key and its value."""


class Means(NamedTuple):
    """Who computes: code, and by their names what operators compute."""

    tenant: str
    javascript: Evaluator
    operators: Mapping[str, Operators]


class Replay(Stepwise):
    """Keeps in memory what its composites keep."""

    knows_arrivals = False
    notes_what_happens = False  # no update of history comes twice

    def __init__(
        self, region: Region, lasts: Mapping[StreamRef, LastUpdate], bounds: Bounds, means: Means
    ) -> None:
        """`lasts` are what the last updates of streams were before."""
        self.region = region
        self.numbers: Mapping[StreamRef, int] = {
            each.ref: number for number, each in enumerate(region.streams) if each is not None
        }
        known = [
            Last(number, *lasts[ref][:2]) for ref, number in self.numbers.items() if ref in lasts
        ]
        call = Call(region.wiring, region.names, known, [], bounds)
        super().__init__(call, self._evaluated)
        self._means = means
        keeping = [
            (number, stream)
            for number, stream in region.composites()
            if stream.composite is not None and call.wiring.nodes[number].keeps
        ]
        self._operators = {
            number: means.operators[stream.composite.evaluator]
            for number, stream in keeping
            if stream.composite is not None
        }
        self._clocks = {
            number: self.numbers[ClockRef(*stream.ref)]
            for number, stream in keeping
            if ClockRef(*stream.ref) in self.numbers
        }
        self.now = 0
        """The log's time, in ms since 1970."""
        self.operating = 0.0
        """Seconds of the processor that operators have taken here."""
        self.kept_bytes = 0
        self._sizes: dict[tuple[int, bytes], int] = {}
        self._due = DueTimes()

    def within(self) -> float:
        """How many seconds code may run from now on."""
        raise NotImplementedError

    def pass_to(self, at: int) -> Iterator[tuple[Event, Grown]]:
        """Let time pass until then, in ms; yield what has come of each time that was due."""
        while (due := self._due.first(at)) is not None:
            self.now = max(self.now, due.at)
            event = Event(self._clocks[due.node], self.now, due.key)
            yield event, self.tree([event])
        self.now = max(self.now, at)

    def tree(self, events: Sequence[Event]) -> Grown:
        """Return what comes of these, now."""
        grown = self.next_tree(0, events)
        self._note(grown.kept)
        return grown

    def into_windows(self, event: Event) -> list[Event]:
        """Return the same update for windows that read it alone; it is its stream's last one."""
        nodes = self.call.wiring.nodes
        wakes = [each for each in nodes[event.node].wakes if nodes[each.node].keeps]
        return [event._replace(only=each.number) for each in wakes] or [
            event._replace(only=NOBODY)
        ]

    def outcome(
        self, node: int, event: Event, wake: Wake, lasts: Mapping[int, Last], kept: KeptBefore
    ) -> tuple[Outcome, float]:
        """What comes of a computation."""
        operator = self._operators.get(node)
        if operator is None:
            return super().outcome(node, event, wake, lasts, kept)
        began = thread_time()
        asked = Computation(node, event, wake, self.now)
        name = self.call.names[node]
        found = operator.once(self.call.wiring.nodes, asked, lasts, kept, name, self._run)
        self.operating += thread_time() - began
        return found, 0.0

    def _note(self, entries: Iterable[Kept]) -> None:
        """Note what is kept after a tree, and when it is due; what is gone is forgotten."""
        for each in entries:
            key = each.node, each.key
            self._due.note([each])
            size = 0 if each.value is None else ENTRY + len(each.key) + len(each.value)
            self.kept_bytes += size - self._sizes.pop(key, 0)
            if each.value is None:
                self.kept.pop(key, None)
            else:
                self._sizes[key] = size

    def _evaluated(self, _tree: int, _node: int, call: Call) -> Grown:
        (grown,) = self._run([call])
        return grown

    def _run(self, calls: Sequence[Call]) -> Sequence[Grown]:
        return self._means.javascript.evaluate(self._means.tenant, calls, self.within())
