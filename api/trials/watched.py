"""Grows the trees of one version within the bounds of a trial, and keeps what its windows keep."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from api.replaying.replay import Means, Replay
from api.trials.trial import COMPUTATIONS, KEPT_BYTES, SECONDS, VERSION_BYTES
from api.trials.wholeness import Whole
from sandbox import TookTooLong
from sandbox.trees import CLOCK, Bounds, Event, Grown, Last, Path, Wake
from servioticy.domain.evaluators.steps import Outcome
from servioticy.domain.evaluators.stepwise import KeptBefore, Refusal, TooMuch
from servioticy.domain.known_streams import Region
from servioticy.domain.model import LastUpdate, StreamRef

MESSAGE = 500
"""Characters that are told of how a computation ended."""
TOLD = 150
"""Bytes that it takes to tell so, beside the message."""

OVER_TIME = f"{SECONDS:g} s are the most that a trial takes"
OVER_COMPUTATIONS = f"{COMPUTATIONS:,} computations of a version are the most of a trial"
OVER_BYTES = f"{VERSION_BYTES >> 20} MiB of results of a version are the most of a trial"
OVER_KEPT = f"{KEPT_BYTES >> 20} MiB kept by windows of a version are the most of a trial"


class Enough(Exception):
    """A bound of the trial is reached; its sentence says which."""


class _Taken(NamedTuple):
    computations: int
    size: int


class Watched(Replay):
    """Grows one tree after the other."""

    def __init__(
        self,
        region: Region,
        lasts: Mapping[StreamRef, LastUpdate],
        hops: int,
        means: Means,
        whole: Whole,
    ) -> None:
        super().__init__(region, lasts, Bounds(hops, COMPUTATIONS), means)
        self._whole = whole
        self.until = 0.0
        """A moment of the monotonic clock."""
        self._reached = ""
        self._before = self._now = _Taken(0, 0)

    def processor(self) -> float:
        """Seconds that computations have taken of the processor so far."""
        scripts = self._means.javascript.processor_seconds(self._means.tenant).programs
        return scripts + self.operating

    def within(self) -> float:
        """How many seconds are left."""
        return max(0.001, self.until - time.monotonic())

    def tree(self, events: Sequence[Event]) -> Grown:
        """What comes of an update, or of a time. Raises Enough."""
        self._before = self._now
        try:
            return super().tree(events)
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
        elif self.kept_bytes > KEPT_BYTES:
            self._reached = OVER_KEPT
        elif time.monotonic() >= self.until:
            self._reached = OVER_TIME
        else:
            return self.too_deep(path)
        raise TooMuch

    def outcome(
        self, node: int, event: Event, wake: Wake, lasts: Mapping[int, Last], kept: KeptBefore
    ) -> tuple[Outcome, float]:
        """What comes of a computation."""
        if self.call.wiring.nodes[node].keeps and wake.argument != CLOCK:
            self._whole.takes(self.region.stream(node).ref, event.timestamp)
        return super().outcome(node, event, wake, lasts, kept)

    def decides(self, _node: int, _path: Path, outcome: Outcome, _seconds: float) -> Outcome:
        """Note what it is to be told of."""
        made = sum([len(each.document) for each in outcome.made])
        size = self._now.size + TOLD + len(outcome.message[:MESSAGE]) + made
        self._now = _Taken(self._now.computations, size)
        return outcome
