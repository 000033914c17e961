"""Trees of one record from outside, whichever transactions they are stored in."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from neighbours import Neighbours

READERS = ("a", "b", "c", "d")


def world(most: int) -> Neighbours:
    """Of four tenants each reads `x/s`; so many updates are computed in a transaction."""
    found = Neighbours(most=most)
    found.define("p", "x", "s")
    for each in READERS:
        found.define(each, f"r{each}", "own", c=("x/s",))
    found.run()
    return found


def test_each_tenant_grows_a_tree_of_its_own() -> None:
    found = world(1000)
    found.batches.clear()
    found.put("x/s", 1)
    found.run()

    for each in READERS:
        assert found.got(f"r{each}/c") == [1]
        assert found.verdicts(f"r{each}/c") == {"emitted": 1}
    assert found.got("x/s") == [1]
    trees = [(each.offset, each.tree) for batch in found.batches for each in batch.updates]
    assert len(set(trees)) == 1 + len(READERS)
    assert sorted(tree for _offset, tree in trees) == [0, *sorted(map(found.tenant, READERS))]


@pytest.mark.parametrize("death", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 10))
@pytest.mark.parametrize("most", [1, 3])
def test_whichever_transaction_a_worker_dies_in_each_tree_grows_once(
    most: int, number: int, death: str
) -> None:
    """What has come is noted with the last of its trees: else the others would not grow."""
    found = world(most)
    with found.dying(number, death):
        for at in (1, 2):
            found.put("x/s", at)
        found.run()

    for each in READERS:
        assert found.stored(f"r{each}/c") == [1, 2]
        assert set(found.got(f"r{each}/c")) == {1, 2}
        assert found.verdicts(f"r{each}/c") == {"emitted": 2}
    assert not found.state.dead_letters


def test_a_transaction_may_end_within_a_record() -> None:
    found = world(1)
    found.batches.clear()
    found.put("x/s", 1)
    found.run()

    places = [(each.next_offset, each.next_tree) for each in found.batches if each.updates]
    assert any(tree > 0 for _offset, tree in places)
    for partition in range(2):
        own = [each for each in found.batches if each.partition == partition]
        for before, after in itertools.pairwise(own):
            end = before.next_offset, before.next_tree
            assert (after.first_offset, after.first_tree) == end
    marks = Counter(len(each.marks) for each in found.batches if each.updates and each.next_tree)
    assert set(marks) <= {0}, "marks are noted with the end of their record"
    assert len(found.state.marks) == 2


def test_what_is_not_sent_for_certain_is_sent_again_and_taken_once() -> None:
    found = world(1000)
    found.put("x/s", 1)
    found.state.broker_answers = False
    before = [len(each) for each in found.state.log]
    found.take(0)
    (crossing,) = found.state.crossings.values()
    assert sorted(crossing.partitions) == [0, 1]
    assert [len(each) for each in found.state.log] == before

    found.state.broker_answers = True
    for _ in range(2):
        found.start()
        found.tasks[0].take([])
    assert [len(each) for each in found.state.log] == [each + 2 for each in before]
    found.run()
    for each in found.tasks:
        each.end()

    assert not found.state.crossings
    for each in READERS:
        assert found.got(f"r{each}/c") == [1]
