"""The evaluator of JavaScript: whole trees in the sandbox, which contains what it runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from sandbox import ProcessorSeconds, TookTooLong
from sandbox.revisions import revision_of
from sandbox.trees import Call, Grown, Last, Made
from servioticy.domain.evaluators.stepwise import Endings, Stepwise
from servioticy.domain.timing import becomes_last


class Sandbox(Protocol):
    """Grows trees of one tenant; raises only where nobody's code is to blame."""

    def grow(self, tenant: str, calls: Sequence[Call], within: float | None = None) -> list[Grown]:
        """Of each call its trees, or the first of them. Raises TookTooLong after so long."""

    def is_ready(self, tenant: str) -> bool:
        """Whether that need not wait for the start of a process."""

    def growing_seconds_of(self, tenant: str) -> ProcessorSeconds:
        """What the tenant's trees have taken so far."""


class JavaScript:
    """Asks a sandbox until all trees are grown.

    A tree whose code ends a process, or is too slow, is grown step by step, and from then on
    others of its call one at a time: it may be they that do it, too.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def evaluate(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[Grown]:
        """What came of each call. Raises TookTooLong."""
        turn = _Turn(self._sandbox, tenant, within)
        growing = [_Growing(each) for each in calls]
        while left := [each for each in growing if not each.is_done]:
            answers = turn.grow([each.next() for each in left])
            # A call may have got no turn; but some of them has, or nothing would ever come.
            stuck = not any(grown.made or grown.failed for grown in answers)
            for each, grown in zip(left, answers, strict=True):
                each.take(grown)
                if grown.failed or stuck:
                    alone = each.next_alone()
                    each.take_alone(Stepwise(alone, turn.step).grow())
        return [each.grown() for each in growing]

    def is_ready(self, tenant: str) -> bool:
        """Whether the tenant has a process that waits."""
        return self._sandbox.is_ready(tenant)

    def processor_seconds(self, tenant: str) -> ProcessorSeconds:
        """What the tenant's trees have taken."""
        return self._sandbox.growing_seconds_of(tenant)


class _Turn:
    """The sandbox, for one tenant and so many seconds."""

    def __init__(self, sandbox: Sandbox, tenant: str, within: float | None) -> None:
        self._sandbox = sandbox
        self._tenant = tenant
        self._within = within
        self._began = time.monotonic()

    def grow(self, calls: Sequence[Call]) -> list[Grown]:
        left = None
        if self._within is not None:
            spent = time.monotonic() - self._began
            left = self._within - spent
            if left <= 0:
                raise TookTooLong(spent, self._within)
        return self._sandbox.grow(self._tenant, calls, left)

    def step(self, _tree: int, _node: int, call: Call) -> Grown:
        return self.grow([call])[0]


class _Growing:
    """A call of which some trees are grown."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._lasts = {each.node: each for each in call.lasts}
        self._made: list[Sequence[Made]] = []
        self._ended = Endings()
        self._at_once = len(call.trees)
        self._makes_too_much = False

    @property
    def is_done(self) -> bool:
        """Whether all trees are grown, or the next one makes too much."""
        return self._makes_too_much or len(self._made) == len(self._call.trees)

    def next(self) -> Call:
        """The call without what is done."""
        done = len(self._made)
        if not done and self._at_once == len(self._call.trees):
            return self._call
        trees = self._call.trees[done : done + self._at_once]
        return replace(self._call, lasts=list(self._lasts.values()), trees=trees)

    def next_alone(self) -> Call:
        """The next tree only; so are others from now on."""
        self._at_once = 1
        return self.next()

    def take(self, grown: Grown) -> None:
        """Some more trees are grown."""
        done = len(self._made)
        for ended in grown.ended:
            self._ended.add(ended._replace(tree=ended.tree + done) if done else ended)
        self._made += grown.made
        if len(self._made) < len(self._call.trees):
            trees = self._call.trees[done:]
            for tree, made in zip(trees, grown.made, strict=False):
                for event in tree:
                    if not self._brings_windows(event.node):
                        self._becomes(Last(event.node, event.timestamp, event.document))
                for each in made:
                    if not self._is_passing(each):
                        self._becomes(Last(each.node, each.timestamp, each.document, each.state))

    def take_alone(self, grown: Grown) -> None:
        """The next tree is grown step by step, or makes too much."""
        self.take(grown)
        self._makes_too_much = grown.failed

    def grown(self) -> Grown:
        """All that has come of the call."""
        return Grown(self._made, self._ended.all(), self._makes_too_much)

    def _brings_windows(self, node: int) -> bool:
        """Whether nobody reads the last update of a stream, only what comes."""
        nodes = self._call.wiring.nodes
        return nodes[node].brings or any(nodes[wake.node].windowed for wake in nodes[node].wakes)

    def _is_passing(self, made: Made) -> bool:
        if not self._call.wiring.nodes[made.node].windowed:
            return False
        revision = revision_of(made.document)
        return revision is not None and not revision.is_kept

    def _becomes(self, new: Last) -> None:
        last = self._lasts.get(new.node)
        if last is None or becomes_last(new.timestamp, last.timestamp):
            state = last.state if last is not None and new.state is None else new.state
            self._lasts[new.node] = new._replace(state=state)
