"""A version as it is played: stored updates, one after the other, and what came of each.

It is played by the interpreter that takes one computation after the other
(`servioticy/domain/evaluators/stepwise.py`), as what every single one comes to is to be told.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from api.trials.trial import COMPUTATIONS, SECONDS, VERSION_BYTES, Trial, Update
from api.trials.version import Version
from sandbox import TookTooLong
from sandbox.trees import Bounds, Call, Event, Grown, Last, Path
from servioticy.domain.evaluators.evaluator import Evaluator
from servioticy.domain.evaluators.steps import Outcome
from servioticy.domain.evaluators.stepwise import Refusal, Stepwise, TooMuch
from servioticy.domain.model import LastUpdate, StreamRef, Timestamp
from servioticy.domain.verdicts import EMITTED

WAKES_NOBODY = -1
"""The number of no wake."""
MESSAGE = 500
"""Characters that are told of how a computation ended."""
TOLD = 150
"""Bytes that it takes to tell so, beside the message."""


class Ending(NamedTuple):
    """What came of a composite because of one update."""

    verdict: str
    message: str
    timestamp: Timestamp | None = None
    document: bytes | None = None
    """Of the last update that it made, if it made any."""


class Played(NamedTuple):
    """What came of one update."""

    endings: Mapping[StreamRef, Ending]
    kinds: Sequence[tuple[str, int]]
    """How computations ended, and how many did."""
    seconds: float
    """Of the processor: running scripts."""


NOTHING = Played({}, (), 0.0)


OVER_TIME = f"{SECONDS:g} s are the most that a trial takes"
OVER_COMPUTATIONS = f"{COMPUTATIONS:,} computations of a version are the most of a trial"
OVER_BYTES = f"{VERSION_BYTES >> 20} MiB of results of a version are the most of a trial"


class Enough(Exception):
    """A bound of the trial is reached; its sentence says which."""


class _Taken(NamedTuple):
    computations: int
    size: int


class Playing:
    """A version, update after update."""

    def __init__(
        self,
        version: Version,
        trial: Trial,
        lasts: Mapping[StreamRef, LastUpdate],
        evaluator: Evaluator,
    ) -> None:
        self._version = version
        self._region = version.region()
        self._numbers: dict[StreamRef, int] = {}
        self._watch: _Watched | None = None
        if self._region is not None:
            streams = enumerate(self._region.streams)
            self._numbers = {each.ref: number for number, each in streams if each is not None}
            known = [
                Last(number, *lasts[ref][:2])
                for ref, number in self._numbers.items()
                if ref in lasts
            ]
            bounds = Bounds(trial.hops, COMPUTATIONS)
            call = Call(self._region.wiring, self._region.names, known, [], bounds)
            self._watch = _Watched(call, evaluator, str(trial.caller))

    def play(self, update: Update, until: float) -> Played:
        """What comes of it, by that moment of the monotonic clock. Raises Enough."""
        watch, number = self._watch, self._numbers.get(update.stream)
        if watch is None or number is None or update.stream in self._version.concerned:
            return NOTHING
        wakes = update.played and update.stream in self._version.triggers
        only = None if wakes else WAKES_NOBODY
        event = Event(number, update.timestamp, update.document, only=only)
        before = watch.processor()
        grown = watch.tree(event, until)
        kinds = [(each.kind, each.times) for each in grown.ended]
        return Played(self._endings(grown), kinds, watch.processor() - before)

    def _endings(self, grown: Grown) -> dict[StreamRef, Ending]:
        found: dict[StreamRef, Ending] = {}
        if self._region is None:
            return found
        for each in grown.ended:
            ref = self._region.stream(each.node).ref
            if ref not in found or found[ref].verdict != EMITTED:
                found[ref] = Ending(each.kind, each.message[:MESSAGE])
        for made in grown.made[0]:
            ref = self._region.stream(made.node).ref
            found[ref] = Ending(EMITTED, "", made.timestamp, made.document)
        return found


class _Watched(Stepwise):
    """Grows trees within the bounds of a trial."""

    knows_arrivals = False

    def __init__(self, call: Call, evaluator: Evaluator, tenant: str) -> None:
        super().__init__(call, self._evaluated)
        self._evaluator = evaluator
        self._tenant = tenant
        self._until = 0.0
        self._reached = ""
        self._before = self._now = _Taken(0, 0)

    def processor(self) -> float:
        """Seconds that scripts have run so far."""
        return self._evaluator.processor_seconds(self._tenant).programs

    def tree(self, event: Event, until: float) -> Grown:
        """What one update makes. Raises Enough."""
        self._until, self._before = until, self._now
        try:
            return self.next_tree(0, [event])
        except TookTooLong as error:
            raise Enough(OVER_TIME) from error
        except TooMuch as error:
            raise Enough(self._reached) from error

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
        elif time.monotonic() >= self._until:
            self._reached = OVER_TIME
        else:
            return self.too_deep(path)
        raise TooMuch

    def decides(self, _node: int, _path: Path, outcome: Outcome, _seconds: float) -> Outcome:
        """Note what it is to be told of."""
        made = sum([len(each.document) for each in outcome.made])
        size = self._now.size + TOLD + len(outcome.message[:MESSAGE]) + made
        self._now = _Taken(self._now.computations, size)
        return outcome

    def _evaluated(self, _tree: int, _node: int, call: Call) -> Grown:
        within = max(0.001, self._until - time.monotonic())
        (grown,) = self._evaluator.evaluate(self._tenant, [call], within)
        return grown
