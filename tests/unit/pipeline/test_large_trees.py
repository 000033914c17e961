"""What one tree needs and makes may be much: it is found a part at a time, and never in vain."""

from __future__ import annotations

from functools import partial

import pytest
from engine_builders import evaluators, logged
from memory import MemoryPlatform
from oracle import Composite, Object
from serial_order import define

from pipeline.engine import Engine
from pipeline.errors import TreeTooLarge
from pipeline.limits import NO_LIMITS
from pipeline.process import process
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import Spending
from pipeline.state import partition as partitions
from pipeline.state.decided import Decided
from pipeline.state.partition import Partition
from pipeline.work import Work
from sandbox import argument_names
from servioticy.domain import plans
from servioticy.domain.model import StreamRef
from servioticy.domain.pauses import finished
from servioticy.ports.put_off import TreeKey

READERS = 5
ROOT = StreamRef("so", "d")


@pytest.fixture
def partition() -> Partition:
    """With a stream that five composites read, of which another one reads the first."""
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("t"))
    readers = [Composite(f"c{n}", ("d",), None) for n in range(READERS)]
    whole = Object("so", ("d",), (*readers, Composite("e", ("c0",), None)))
    codes = {("so", each.name): f"({each.reads[0]}) => 1" for each in whole.composites}
    define(whole, codes, tenant, platform)
    for kept in platform.state.service_objects.values():
        kept.active_version = 1
    found = Partition(0, platform.partition_store(argument_names), 10**6)
    assert found.service_object("so", at_once=True)
    return found


@pytest.mark.parametrize(("most", "is_tried"), [(READERS, True), (READERS - 1, False)])
def test_a_tree_that_is_sure_to_be_too_large_is_not_tried(
    partition: Partition, *, most: int, is_tried: bool
) -> None:
    """What follows from what its composites make may or may not come."""
    limits = NO_LIMITS._replace(computations=most)
    work = Work([logged(1, 1, ROOT)], TreeKey(2))
    engine = Engine(evaluators(), 100, 100, limits)
    tree = partial(process, work, partition, Decided(), engine)
    steps = tree(Rules(limits), Spending(limits, 1))
    asked = 0
    with pytest.raises(TreeTooLarge):
        for question in steps:
            asked += question is not None
            if question is not None:
                question()
    assert asked == is_tried

    alone = tree(Rules(limits, alone=True), Spending(limits, 1))
    assert any(question is not None for question in alone)


def test_what_is_recalled_a_part_at_a_time_is_what_it_was(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others go on meanwhile, and what they need may push out what has been looked up."""
    plan = partition.graph.plan(partition.graph.stream(ROOT))
    at_once = finished(partition.recall([plan]))
    monkeypatch.setattr(partitions, "RECALLED_AT_ONCE", 2)
    parts, steps = partition.recall([plan]), 0
    while True:
        try:
            next(parts)
        except StopIteration as end:
            assert end.value == at_once
            break
        steps += 1
        partition._last_updates.forget_all(["so"])
    assert steps == (len(at_once) - 1) // 2


def test_what_takes_long_to_plan_is_left_to_its_own_piece(
    partition: Partition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others of its batch would wait until it is planned."""
    monkeypatch.setattr(plans, "PACES", 1)
    origin, work = partition.graph.stream(ROOT), Work([logged(1, 1, ROOT)], TreeKey(2))
    partition.recall_all(work)
    assert not partition._last_updates.knows(ROOT)

    steps = sum(1 for _ in partition.graph.planning(origin))
    assert steps >= 2 * READERS
    assert partition.graph.plan(origin).least == READERS
    partition.recall_all(work)
    assert partition._last_updates.knows(ROOT)


def test_what_is_cut_as_one_region_is_computed_alone_as_that(partition: Partition) -> None:
    """To cut it out once more takes as long as to cut the component."""
    origin = partition.graph.stream(ROOT)

    assert finished(partition.graph.whole([origin])) == (origin.entries,)
