"""Grows the trees of one version within the bounds of a trial, and keeps what its windows keep."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from time import thread_time
from typing import NamedTuple

from api.trials.moments import Due, DueTimes
from api.trials.trial import COMPUTATIONS, KEPT_BYTES, SECONDS, VERSION_BYTES
from api.trials.wholeness import Whole
from sandbox import TookTooLong
from sandbox.trees import CLOCK, Call, Event, Grown, Last, Path, Wake
from servioticy.domain.evaluators.evaluator import Evaluator
from servioticy.domain.evaluators.operators import Computation, Operators
from servioticy.domain.evaluators.steps import Outcome
from servioticy.domain.evaluators.stepwise import KeptBefore, Refusal, Stepwise, TooMuch
from servioticy.domain.known_streams import Region

MESSAGE = 500
"""Characters that are told of how a computation ended."""
TOLD = 150
"""Bytes that it takes to tell so, beside the message."""
ENTRY = 100
"""Bytes of memory for an entry, beside its key and its value."""

OVER_TIME = f"{SECONDS:g} s are the most that a trial takes"
OVER_COMPUTATIONS = f"{COMPUTATIONS:,} computations of a version are the most of a trial"
OVER_BYTES = f"{VERSION_BYTES >> 20} MiB of results of a version are the most of a trial"
OVER_KEPT = f"{KEPT_BYTES >> 20} MiB kept by windows of a version are the most of a trial"


class Enough(Exception):
    """A bound of the trial is reached; its sentence says which."""


class Means(NamedTuple):
    """Who computes: code, and by their names what operators compute."""

    tenant: str
    javascript: Evaluator
    operators: Mapping[str, Operators]


class _Taken(NamedTuple):
    computations: int
    size: int


class Watched(Stepwise):
    """Grows one tree after the other."""

    knows_arrivals = False

    def __init__(self, call: Call, region: Region, means: Means, whole: Whole) -> None:
        super().__init__(call, self._evaluated)
        self._means = means
        self._operators = {
            number: means.operators[stream.composite.evaluator]
            for number, stream in region.composites()
            if stream.composite is not None and call.wiring.nodes[number].keeps
        }
        self._refs = {number: stream.ref for number, stream in region.composites()}
        self._whole = whole
        self._due = DueTimes()
        self._at = 0
        self._until = 0.0
        self._reached = ""
        self._before = self._now = _Taken(0, 0)
        self._operating = 0.0
        self._touched: set[tuple[int, bytes]] = set()
        self._sizes: dict[tuple[int, bytes], int] = {}
        self._kept_bytes = 0

    def processor(self) -> float:
        """Seconds that computations have taken of the processor so far."""
        scripts = self._means.javascript.processor_seconds(self._means.tenant).programs
        return scripts + self._operating

    def due(self, at: int) -> Due | None:
        """What is due first by this time of the log; it is to be told of it."""
        return self._due.first(at)

    def tree(self, events: Sequence[Event], at: int, until: float) -> Grown:
        """What comes of an update, or of a time, by that moment of the monotonic clock.

        `at` is the log's time. Raises Enough.
        """
        self._at, self._until, self._before = at, until, self._now
        try:
            grown = self.next_tree(0, events)
        except TookTooLong as error:
            raise Enough(OVER_TIME) from error
        except TooMuch as error:
            raise Enough(self._reached) from error
        self._note_kept()
        return grown

    def begin(self, tree: int) -> None:
        """Count anew: where composites settle a tree is taken several times."""
        super().begin(tree)
        self._now = self._before

    def arrives(self, _node: int, path: Path) -> Refusal | None:
        """As in any tree, while there is time and room for it."""
        self._now = _Taken(self._now.computations + 1, self._now.size)
        if self._now.computations > COMPUTATIONS:
            self._reached = OVER_COMPUTATIONS
        elif self._now.size > VERSION_BYTES:
            self._reached = OVER_BYTES
        elif self._kept_bytes > KEPT_BYTES:
            self._reached = OVER_KEPT
        elif time.monotonic() >= self._until:
            self._reached = OVER_TIME
        else:
            return self.too_deep(path)
        raise TooMuch

    def outcome(
        self, node: int, event: Event, wake: Wake, lasts: Mapping[int, Last], kept: KeptBefore
    ) -> tuple[Outcome, float]:
        """What comes of a computation."""
        operator = self._operators.get(node)
        if operator is None:
            return super().outcome(node, event, wake, lasts, kept)
        began = thread_time()
        if wake.argument != CLOCK:
            self._whole.takes(self._refs[node], event.timestamp)
        asked = Computation(node, event, wake, self._at)
        name = self.call.names[node]
        found = operator.once(self.call.wiring.nodes, asked, lasts, kept, name, self._run)
        self._operating += thread_time() - began
        return found, 0.0

    def decides(self, node: int, _path: Path, outcome: Outcome, _seconds: float) -> Outcome:
        """Note what it is to be told of, and what is kept."""
        made = sum([len(each.document) for each in outcome.made])
        size = self._now.size + TOLD + len(outcome.message[:MESSAGE]) + made
        self._now = _Taken(self._now.computations, size)
        self._touched.update([(node, each.key) for each in outcome.kept])
        return outcome

    def _note_kept(self) -> None:
        """Note what windows keep after a tree, and when it is due."""
        entries = [self.kept[key] for key in self._touched if key in self.kept]
        self._touched.clear()
        self._due.note(entries)
        for each in entries:
            key = each.node, each.key
            size = ENTRY + len(each.key) + len(each.value or b"")
            self._kept_bytes += size - self._sizes.get(key, 0)
            self._sizes[key] = size

    def _evaluated(self, _tree: int, _node: int, call: Call) -> Grown:
        (grown,) = self._run([call])
        return grown

    def _run(self, calls: Sequence[Call]) -> Sequence[Grown]:
        within = max(0.001, self._until - time.monotonic())
        return self._means.javascript.evaluate(self._means.tenant, calls, within)
