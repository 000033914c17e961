"""Stage 3: let the evaluators grow the trees, each asked once for all regions of a tenant."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from pipeline.errors import TreeTooLarge
from pipeline.growth import Asked, NewUpdate, RegionOutput, StateLacking, Verdict
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import Spending
from pipeline.stages.watch import Watched
from pipeline.state.decided import Decided
from pipeline.work import LoggedUpdate
from sandbox import TookTooLong, trees
from sandbox.trees import Call, Kept
from servioticy.domain.evaluators.evaluator import Evaluators, Lacking
from servioticy.domain.model import JAVASCRIPT
from servioticy.domain.verdicts import HOP_LIMIT


def transform(
    asked: Sequence[Asked],
    updates: Sequence[LoggedUpdate],
    evaluators: Evaluators,
    decided: Decided,
    rules: Rules,
    spending: Spending,
    within: float | None = None,
) -> tuple[list[RegionOutput], list[Verdict]]:
    """What the regions make of each tree, and how all computations ended.

    A knot is taken step by step, and so is a tree that is computed alone. Raises TookTooLong
    where scripts take more than `within` seconds, or more than their tenants have left. With
    None they take what they take; it is noted in `spending` all the same. Raises TreeTooLarge
    where a tree makes more than it may in a batch, and BatchTooLarge where all do together; and
    StateLacking where all is to be asked again once it is known what composites keep.
    """
    ask = _Asking(evaluators, spending, within)
    together: dict[tuple[int, str], list[Asked]] = {}
    answers: list[tuple[Asked, trees.Grown]] = []
    by_step: list[Asked] = []
    for each in asked:
        tenant, evaluator = each.region.tenant, each.region.evaluator
        if evaluator is None or rules.alone:
            by_step.append(each)
        else:
            together.setdefault((tenant, evaluator), []).append(each)
    # Whole regions of JavaScript last: where others lack entries all of this is done again.
    for tenant, evaluator in [key for key in together if key[1] != JAVASCRIPT]:
        answers += ask.together(tenant, evaluator, together.pop((tenant, evaluator)))
    for each in by_step:
        watched = Watched(each, _Step(ask, each), updates, rules, spending, decided)
        answers.append((each, watched.grow()))
    for (tenant, evaluator), theirs in together.items():
        answers += ask.together(tenant, evaluator, theirs)
    new: list[RegionOutput] = []
    ended: list[Verdict] = []
    for each, grown in answers:
        if grown.failed:
            raise TreeTooLarge(updates[each.numbers[len(grown.made)]].key)
        size = _add_new(each, grown.made, updates, new, spending, alone=rules.alone)
        if grown.kept:
            _add_kept(each, grown.kept, new, spending)
        _count(grown, size, spending)
        _add_verdicts(each, grown, ended)
    return new, ended


class _Asking:
    """The evaluators, and how long they may take together."""

    def __init__(self, evaluators: Evaluators, spending: Spending, within: float | None) -> None:
        self._evaluators = evaluators
        self._spending = spending
        self._within = within
        self._began = time.monotonic()

    def together(
        self, tenant: int, evaluator: str, asked: Sequence[Asked]
    ) -> Iterable[tuple[Asked, trees.Grown]]:
        """What comes of each of these. Raises StateLacking."""
        try:
            found = self.all(tenant, evaluator, [each.call for each in asked])
        except Lacking as lacking:
            numbered = zip(lacking.calls, lacking.keys, strict=True)
            raise StateLacking(
                [(asked[number].region.stream(node), key) for number, (node, key) in numbered]
            ) from None
        return zip(asked, found, strict=True)

    def all(self, tenant: int, evaluator: str, calls: Sequence[Call]) -> list[trees.Grown]:
        """What comes of the calls."""
        began, ours = time.monotonic(), time.thread_time()
        most = None
        if self._within is not None:
            spent = began - self._began
            most = min(self._within - spent, self._spending.seconds_left)
            if most <= 0:
                raise TookTooLong(spent, self._within)
        by = self._evaluators[evaluator]
        before = by.processor_seconds(str(tenant))
        try:
            return by.evaluate(str(tenant), calls, most)
        finally:
            waited = time.monotonic() - began
            used = by.processor_seconds(str(tenant)).since(before)
            self._spending.ran(waited, used, time.thread_time() - ours)


class _Step:
    """Has one computation of a region done by whoever computes that composite."""

    def __init__(self, ask: _Asking, asked: Asked) -> None:
        self._ask = ask
        self._region = asked.region

    def __call__(self, _tree: int, node: int, call: Call) -> trees.Grown:
        stream = self._region.stream(node)
        evaluator = stream.composite.evaluator if stream.composite else ""
        try:
            return self._ask.all(stream.tenant, evaluator, [call])[0]
        except Lacking as lacking:
            raise StateLacking([(stream, key) for _node, key in lacking.keys]) from None


def _count(grown: trees.Grown, size: int, spending: Spending) -> None:
    """Note computations, all that was not too deep, and the `size` of what they made, in bytes."""
    spending.count(sum([each.times for each in grown.ended if each.kind != HOP_LIMIT]), size)


def _add_new(
    asked: Asked,
    made: Sequence[Sequence[trees.Made]],
    updates: Sequence[LoggedUpdate],
    new: list[RegionOutput],
    spending: Spending,
    *,
    alone: bool,
) -> int:
    """Add what was made of each tree; its bytes. Raises TreeTooLarge and BatchTooLarge."""
    region, numbers, call, most_bytes = asked
    streams, most = region.streams, call.bounds.computations
    whole = 0
    for number, events, theirs in zip(numbers, call.trees, made, strict=True):
        if not theirs:
            continue
        paths = [event.path for event in events]
        rows: list[NewUpdate] = []
        size = 0
        for parent, wake, node, timestamp, document, state, nth in theirs:
            path = (*paths[parent], wake) if nth is None else (*paths[parent], wake, nth)
            paths.append(path)
            rows.append((streams[node], timestamp, document, path, state))  # type: ignore[arg-type]
            size += len(document)
        if (size > most_bytes or len(rows) > most) and not alone:
            raise TreeTooLarge(updates[number].key)
        whole += size
        new.append(RegionOutput(region, number, rows))
    spending.add_bytes(whole)
    return whole


def _add_kept(
    asked: Asked, kept: Sequence[Kept], new: list[RegionOutput], spending: Spending
) -> None:
    """Add what composites keep otherwise than before."""
    region = asked.region
    before = {(each.node, each.key): _size(each) for each in asked.call.kept}
    entries = [
        (region.stream(e.node), e.key, e.value, e.due, _size(e) - before.get((e.node, e.key), 0))
        for e in kept
    ]
    new.append(RegionOutput(region, asked.numbers[-1], (), entries))
    spending.add_bytes(sum(map(_size, kept)))


def _size(kept: Kept) -> int:
    return 0 if kept.value is None else len(kept.key) + len(kept.value)


def _add_verdicts(asked: Asked, grown: trees.Grown, ended: list[Verdict]) -> None:
    """Add how the computations of a region ended, each kind with its last trigger."""
    region, call = asked.region, asked.call
    for node, kind, count, tree, parent, message, inputs in grown.ended:
        events = call.trees[tree]
        if parent < len(events):
            trigger, timestamp = events[parent][:2]
        else:
            made = grown.made[tree][parent - len(events)]
            trigger, timestamp = made.node, made.timestamp
        ended.append(
            Verdict(
                region.stream(node),
                kind,
                region.stream(trigger),
                timestamp,
                message,
                inputs,
                count,
            )
        )
