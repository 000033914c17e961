"""The serial law across borders: regions of several tenants and evaluators in one tree."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from oracle import Oracle
from serial_order import (
    LAW,
    assert_equal_to_oracle,
    assert_holds,
    bounds,
    functions,
    histories,
    mixtures,
    platform_with,
)

from pipeline.aspects import STAGES
from pipeline.engine import Engine
from pipeline.limits import Limits
from pipeline.process import process
from pipeline.sharing.rules import ITS_SHARE, Rules
from pipeline.sharing.spending import Spending
from pipeline.state.partition import Partition
from pipeline.work import LoggedUpdate, Work
from sandbox import argument_names
from servioticy.domain.model import StreamRef


class Mixed:
    """A store that says of some composites that another evaluator computes them."""

    def __init__(self, store, others: set[tuple[str, str]]) -> None:
        self._store, self._others = store, others

    def __getattr__(self, name: str):
        return getattr(self._store, name)

    def service_objects(self, ids):
        return map(self._mixed, self._store.service_objects(ids))

    def _mixed(self, service_object):
        definition = service_object.definition
        streams = tuple(
            replace(each, composite=replace(each.composite, evaluator="other"))
            if each.composite is not None and each.ref in self._others
            else each
            for each in definition.streams
        )
        return replace(service_object, definition=replace(definition, streams=streams))


def both(first):
    """Evaluators of both names, where the first is as `first` makes them."""
    return lambda objects: first(objects) | {"other": functions(objects)}


@LAW
@given(data=st.data(), cycles=st.booleans())
def test_regions_equal_the_serial_order(data, cycles, evaluators) -> None:
    """Whoever computes what, and whatever belongs to whom."""
    objects, codes, others = data.draw(mixtures(cycles=cycles))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=4))

    assert_equal_to_oracle(
        objects, codes, history, cuts, both(evaluators), known_as=lambda each: Mixed(each, others)
    )


@LAW
@given(data=st.data(), cycles=st.booleans())
def test_regions_with_options_equal_the_serial_order(data, cycles, evaluators) -> None:
    """What settles is a border of its own, unless it is part of a circle."""
    objects, codes, others = data.draw(mixtures(cycles=cycles, options=True, settling_cycles=True))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=4))

    assert_equal_to_oracle(
        objects,
        codes,
        history,
        cuts,
        both(evaluators),
        Limits(8, 1000),
        known_as=lambda each: Mixed(each, others),
    )


@LAW
@given(data=st.data(), hops=st.integers(1, 5), computations=st.integers(1, 12))
def test_limits_cut_trees_of_several_regions_where_the_serial_order_does(
    data, hops, computations, evaluators
) -> None:
    """A tenant's limit holds for all its regions together."""
    objects, codes, others = data.draw(mixtures(cycles=True))
    history = data.draw(histories(objects))
    cuts = data.draw(st.lists(st.integers(0, 60), max_size=4))
    limits = Limits(
        hops,
        computations,
        data.draw(st.integers(1, 400)),
        foreign=data.draw(st.sampled_from([0.0, 0.5, 1.0])),
    )

    assert_equal_to_oracle(
        objects,
        codes,
        history,
        cuts,
        both(evaluators),
        limits,
        known_as=lambda each: Mixed(each, others),
    )


@LAW
@given(data=st.data(), alone=st.booleans())
def test_refused_tenants_are_not_woken_by_others_but_see_what_they_read(
    data, alone, evaluators, monkeypatch
) -> None:
    """In the trees of their own updates they compute with what others made meanwhile."""
    # Nobody cuts a batch here that a busy machine makes slow.
    monkeypatch.setattr("pipeline.process.BATCH_SECONDS", math.inf)
    objects, codes, others = data.draw(mixtures(cycles=data.draw(st.booleans()), options=True))
    refused = data.draw(st.frozensets(st.integers(0, 2), min_size=1, max_size=2))
    history = data.draw(histories(objects))
    limits = Limits(8, 10**6)
    platform = platform_with(objects, codes)
    for kept in platform.state.service_objects.values():
        kept.active_version = 1
    tenants = {each.tenant: platform.state.service_objects[each.id].tenant for each in objects}
    oracle = Oracle(objects, bounds(limits), refused)
    for ref, timestamp, value in history:
        oracle.take(ref, timestamp, value)

    store = Mixed(platform.partition_store(argument_names), others)
    partition = Partition(0, store, 10**6)
    for each in objects:
        partition.service_object(each.id, at_once=True)
    engine = Engine(both(evaluators)(objects), 1000, 10**6, limits, STAGES)
    updates = [
        LoggedUpdate(
            offset,
            platform.state.service_objects[so].tenant,
            StreamRef(so, name),
            timestamp,
            b'{"channels":{"v":{"current-value":%d}},"lastUpdate":%d}' % (value, timestamp),
            b"",
        )
        for offset, ((so, name), timestamp, value) in enumerate(history)
    ]
    stretches = [[each] for each in updates] if alone else [updates]
    over = {tenants[each]: ITS_SHARE for each in refused if each in tenants}
    rules = Rules(limits, alone, over)
    for some in stretches:
        work = Work(some, some[-1].offset + 1)
        output = platform.output(0)
        process(work, partition, output, engine, rules, Spending(limits, work.owners))

    assert_holds(platform, objects, oracle)
