"""What is wanted of a partition is begun, and who wants it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from operators import manifest
from operators.errors import NotAnOperator
from operators.line import Running
from operators.warming import MOST_OPEN, NO_ROOM, Warming
from servioticy.errors import Unavailable
from servioticy.ports.programs import Program
from servioticy.ports.stored_programs import Wanted


class Node:
    """Begins nothing: what came of it is said by the test."""

    def __init__(self) -> None:
        self.begun: list[tuple[Program, Callable[[str], None]]] = []
        self.payers: list[str] = []
        self.has_room = True

    def warm(self, program: Program, payer: str, told: Callable[[str], None]) -> bool:
        """Note it."""
        if self.has_room:
            self.payers.append(payer)
            self.begun.append((program, told))
        return self.has_room

    def running(self) -> Sequence[Running]:
        """Return nothing."""
        return []


class Asked:
    """Who asks, and what they are told."""

    def __init__(self) -> None:
        self.waiting: list[Program] = []
        """Each for a stream of its name."""
        self.told: list[str] = []
        self.is_away = False

    def wanted(self, partition: int, seconds: float) -> Sequence[Wanted]:
        """Return what waits."""
        found, self.waiting = self.waiting, []
        return [Wanted(each, f"so/{each.name}") for each in found]

    def tell_warmed(self, node: str, running: Running, reason: str) -> None:
        """Note it, unless the store is away."""
        if self.is_away:
            raise Unavailable
        self.told.append(f"{running.program.name} {reason}")


def program(number: int, tenant: int = 1) -> Program:
    """Return a program."""
    return Program(tenant, f"p{number}", 1)


def test_who_wants_a_program_is_told_what_came_of_it() -> None:
    """That it is ready, or what is wrong."""
    node, asked = Node(), Asked()
    warming = Warming(asked, "here", 0, node)
    asked.waiting = [program(1), program(2)]
    warming.turn(1.0)
    assert asked.told == []

    node.begun[1][1]("it has ended")
    node.begun[0][1]("")
    warming.turn(1.0)

    assert asked.told == ["p2 it has ended", "p1 "]
    assert node.payers == ["so/p1", "so/p2"]


def test_a_program_that_several_want_is_begun_once() -> None:
    """And told once to all; who asks behind that is told anew."""
    node, asked = Node(), Asked()
    warming = Warming(asked, "here", 0, node)
    for _ in range(20):
        asked.waiting = [program(1)]
        warming.turn(1.0)
    assert len(node.begun) == 1
    node.begun[0][1]("")
    warming.turn(1.0)
    asked.waiting = [program(1)]
    warming.turn(1.0)

    assert asked.told == ["p1 "]
    assert len(node.begun) == 2


def test_an_answer_is_kept_while_the_store_is_away() -> None:
    """And told once it is back, once."""
    node, asked = Node(), Asked()
    warming = Warming(asked, "here", 0, node)
    asked.waiting = [program(1)]
    warming.turn(1.0)
    node.begun[0][1]("")
    asked.is_away = True
    with pytest.raises(Unavailable):
        warming.turn(1.0)
    asked.is_away = False
    warming.turn(1.0)
    warming.turn(1.0)

    assert asked.told == ["p1 "]


def test_a_tenant_has_as_many_open_as_are_left_to_others() -> None:
    """At the border: half of them while nobody else asks; and they are free again."""
    node, asked = Node(), Asked()
    warming = Warming(asked, "here", 0, node)
    asked.waiting = [program(number) for number in range(MOST_OPEN // 2 + 1)]
    asked.waiting.append(program(100, tenant=2))
    warming.turn(1.0)

    assert len(node.begun) == MOST_OPEN // 2 + 1
    assert node.begun[-1][0].tenant == 2
    assert asked.told == [f"p{MOST_OPEN // 2} {NO_ROOM}"]
    for _, told in node.begun:
        told("")
    warming.turn(1.0)
    asked.waiting = [program(1)]
    warming.turn(1.0)
    assert len(node.begun) == MOST_OPEN // 2 + 2


def test_where_a_node_has_no_room_it_is_told() -> None:
    node, asked = Node(), Asked()
    node.has_room = False
    asked.waiting = [program(1)]
    Warming(asked, "here", 0, node).turn(1.0)

    assert asked.told == [f"p1 {NO_ROOM}"]


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("{}", "warm-up: a list of at most 100 events"),
        ("[1]", "warm-up.0: an object"),
        ('[{"stream": 1, "channels": {}}]', "warm-up.0.stream: a text"),
        ('[{"stream": "a"}]', "warm-up.0.channels: an object"),
        ('[{"stream": "a", "channels": {}, "timestamp": -1}]', "warm-up.0.timestamp"),
        ('[{"stream": "a", "channels": {}, "x": 1}]', "warm-up.0.x: there is no such field"),
        (f"[{','.join(['{}'] * 101)}]", "warm-up: a list of at most 100 events"),
    ],
)
def test_a_bad_warm_up_is_refused_with_its_place(given: str, place: str) -> None:
    """When it is pushed."""
    content = f'{{"name": "a", "command": ["./a"], "warm-up": {given}}}'
    with pytest.raises(NotAnOperator, match=place):
        manifest.read(content.encode())


def test_a_warm_up_has_no_more_events_than_the_program_takes_at_once() -> None:
    events = '{"stream": "a", "channels": {"v": 1}}'
    content = '{"name": "a", "command": ["./a"], "batch": {"max": 1}, "warm-up": [%s]}'
    described = manifest.read((content % events).encode())

    assert described.warm_up == (
        b'{"stream":"a","timestamp":0,"channels":{"v":1},"version":0,"correlation":""}',
    )
    with pytest.raises(NotAnOperator, match="at most 1 events"):
        manifest.read((content % f"{events},{events}").encode())
