"""Stage 3: let the evaluators grow the trees, each asked once for all regions of a tenant."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from pipeline.errors import TreeTooLarge
from pipeline.evaluators.evaluator import Evaluators
from pipeline.growth import Asked, NewUpdate, RegionOutput, Verdict
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import Spending
from pipeline.stages.watch import Watched
from pipeline.state.decided import Decided
from pipeline.work import LoggedUpdate
from sandbox import TookTooLong, trees
from sandbox.trees import Call
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
    where a tree makes more than it may in a batch, and BatchTooLarge where all do together.
    """
    ask = _Asking(evaluators, spending, within)
    together: dict[tuple[int, str], list[Asked]] = {}
    answers: list[tuple[Asked, trees.Grown]] = []
    for each in asked:
        tenant, evaluator = each.region.tenant, each.region.evaluator
        if tenant is None or evaluator is None or rules.alone:
            step = ask.step_of(each, _owners([each], updates))
            watched = Watched(each, step, updates, rules, spending, decided)
            answers.append((each, watched.grow()))
        else:
            together.setdefault((tenant, evaluator), []).append(each)
    for (tenant, evaluator), theirs in together.items():
        owners = _owners(theirs, updates)
        found = ask.all(tenant, evaluator, [each.call for each in theirs], owners)
        answers += zip(theirs, found, strict=True)
    new: list[RegionOutput] = []
    ended: list[Verdict] = []
    for each, grown in answers:
        if grown.failed:
            raise TreeTooLarge(updates[each.numbers[len(grown.made)]].offset)
        _count(each, grown.ended, spending)
        _add_new(each, grown.made, updates, new, spending, alone=rules.alone)
        _add_verdicts(each, grown, ended)
    return new, ended


class _Asking:
    """The evaluators, and how long they may take together."""

    def __init__(self, evaluators: Evaluators, spending: Spending, within: float | None) -> None:
        self._evaluators = evaluators
        self._spending = spending
        self._within = within
        self._began = time.monotonic()

    def all(
        self, tenant: int, evaluator: str, calls: Sequence[Call], owners: Mapping[int, int]
    ) -> list[trees.Grown]:
        """What comes of the calls; `owners` tells of how many trees whose updates they are."""
        began = time.monotonic()
        most = None
        if self._within is not None:
            spent = began - self._began
            most = min(self._within - spent, self._spending.seconds_left(tenant))
            if most <= 0:
                raise TookTooLong(spent, self._within)
        self._spending.latest = tenant
        by = self._evaluators[evaluator]
        before = by.processor_seconds(str(tenant))
        try:
            return by.evaluate(str(tenant), calls, most)
        finally:
            used = by.processor_seconds(str(tenant)).since(before)
            self._spending.ran(tenant, owners, time.monotonic() - began, used)

    def step_of(
        self, asked: Asked, owners: Mapping[int, int]
    ) -> Callable[[int, Call], trees.Grown]:
        """Has one computation of a region done by whoever computes that composite."""

        def step(node: int, call: Call) -> trees.Grown:
            stream = asked.region.stream(node)
            evaluator = stream.composite.evaluator if stream.composite else ""
            return self.all(stream.tenant, evaluator, [call], owners)[0]

        return step


def _owners(asked: Sequence[Asked], updates: Sequence[LoggedUpdate]) -> Mapping[int, int]:
    """How many trees of whose updates they are."""
    return Counter([updates[number].tenant for each in asked for number in each.numbers])


def _count(asked: Asked, ended: Sequence[trees.Ended], spending: Spending) -> None:
    """Note computations: all that was not too deep."""
    tenant = asked.region.tenant
    if tenant is not None:
        spending.count(tenant, sum(each.times for each in ended if each.kind != HOP_LIMIT))
        return
    for each in ended:
        if each.kind != HOP_LIMIT:
            spending.count(asked.region.stream(each.node).tenant, each.times)


def _add_new(
    asked: Asked,
    made: Sequence[Sequence[trees.Made]],
    updates: Sequence[LoggedUpdate],
    new: list[RegionOutput],
    spending: Spending,
    *,
    alone: bool,
) -> None:
    """Add what was made of each tree. Raises TreeTooLarge and BatchTooLarge."""
    region, numbers, call, most_bytes = asked
    streams, most = region.streams, call.bounds.computations
    whole = 0
    for number, events, theirs in zip(numbers, call.trees, made, strict=True):
        if not theirs:
            continue
        paths = [event.path for event in events]
        rows: list[NewUpdate] = []
        size = 0
        for parent, wake, node, timestamp, document, state in theirs:
            path = (*paths[parent], wake)
            paths.append(path)
            rows.append((streams[node], timestamp, document, path, state))  # type: ignore[arg-type]
            size += len(document)
        if (size > most_bytes or len(rows) > most) and not alone:
            raise TreeTooLarge(updates[number].offset)
        whole += size
        new.append(RegionOutput(region, number, rows))
    spending.add_bytes(whole)
    foreign = any(updates[number].tenant != region.tenant for number in numbers)
    if foreign and spending.is_crowded and not alone:
        raise TreeTooLarge(updates[numbers[0]].offset)


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
