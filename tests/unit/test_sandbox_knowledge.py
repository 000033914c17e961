"""What a worker is told of a large region: what it needs, once, and in pieces if it must be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sandbox_trees import a_call_of, a_formula, an_event

from sandbox.encoding import PORTION_NODES
from sandbox.host import knowledge
from sandbox.host.knowledge import (
    MEMBER_BYTES,
    NODE_BYTES,
    WAKE_BYTES,
    Knowledge,
    Sizes,
    memory,
)
from sandbox.trees import Event, Node, Wake, Wiring


def pairs(count: int) -> Wiring:
    """So many streams, each with a composite of its own code."""
    sources = [Node((Wake(0, count + n, 0),)) for n in range(count)]
    composites = [Node(code=a_formula(f"$0 + {n}"), inputs=((n,),)) for n in range(count)]
    return Wiring(f"pairs {count}", (*sources, *composites))


def told(wiring: Wiring) -> Knowledge:
    """What a worker knows that has this wiring."""
    found = Knowledge()
    list(found.portions_of(wiring))
    found.note_wiring(wiring)
    return found


def names(found: Knowledge, wiring: Wiring, *nodes: int) -> list[str]:
    """The programs that an update of each of these streams makes necessary."""
    call = a_call_of(wiring, *[Event(node, 2, an_event().document) for node in nodes])
    portions = found.new_programs([call])
    for portion in portions:
        found.note_programs(portion)
    return [each.name for portion in portions for each in portion]


def test_only_programs_that_the_trees_reach_are_made_known() -> None:
    """A fleet is one region by what reads all of it, and each device may have its own code."""
    wiring = pairs(5)
    found = told(wiring)

    assert names(found, wiring, 1, 3) == ["$0 + 1", "$0 + 3"]
    assert names(found, wiring, 1, 2) == ["$0 + 2"]
    assert names(found, wiring, 1, 2, 3) == []


def test_a_program_that_was_refused_is_made_known_once_it_is_not() -> None:
    wiring = pairs(1)
    found = told(wiring)
    call = a_call_of(wiring, an_event())

    assert found.new_programs([replace(call, refused={1: ("suspended", "")})]) == []
    assert names(found, wiring, 0) == ["$0 + 0"]


def test_a_wiring_is_gone_on_with_where_it_was_left() -> None:
    """A large one takes longer than a batch may: else it would never be known."""
    wiring = Wiring("large", (Node(),) * (2 * PORTION_NODES))
    found = Knowledge()
    first = next(iter(found.portions_of(wiring)))
    found.note_portion(wiring)
    other = pairs(1)
    list(found.portions_of(other))
    found.note_wiring(other)

    (second,) = found.portions_of(wiring)

    assert first.startswith(b"[0,%d,0," % len(wiring.nodes))
    assert second.startswith(b"[0,%d,%d," % (len(wiring.nodes), PORTION_NODES))
    assert found.slots == {"large": 0, other.id: 1}


def test_a_worker_is_not_full_of_one_large_wiring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another worker would be as full at once, and be ended with every frame."""
    monkeypatch.setattr(knowledge, "MAX_MEMORY", 10 * knowledge.NODE_BYTES)
    found = told(pairs(20))
    assert not found.is_full()

    found.note_wiring(pairs(6))
    assert found.is_full()


def test_what_a_wiring_takes_grows_with_what_it_links() -> None:
    """A few streams may be read, and wake, a hundred thousand times."""
    alone = Node()
    reads = Node(code=a_formula("$0"), inputs=((0,) * 100, (1,)))
    wakes = Node(tuple(Wake(n, 0, 0) for n in range(10)))

    assert memory(Wiring("one", (alone,))) == NODE_BYTES
    assert memory(Wiring("two", (reads, wakes))) == (
        2 * NODE_BYTES + 101 * MEMBER_BYTES + 10 * WAKE_BYTES
    )


def test_a_wiring_is_too_large_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(knowledge, "MAX_WIRING_BYTES", memory(pairs(3)))
    sizes = Sizes()

    assert [sizes.is_too_large(pairs(count)) for count in (3, 4, 3, 4)] == [False, True] * 2
