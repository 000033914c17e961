"""Threads that are there again, with what they have open, and go when nobody needs them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from waiting import until

from functions.hands import Hands


class World:
    """Threads by number, in the order in which they come."""

    def __init__(self, keep_seconds: float = 300.0) -> None:
        self.closed: list[int] = []
        self.worked: list[int] = []
        self.hands = Hands(lambda: self.closed.append(threading.get_ident()), keep_seconds)

    def work(self, then: Callable[[], object] = lambda: None) -> None:
        """Give some work, and wait until it is done."""
        done = threading.Event()

        def own() -> None:
            self.worked.append(threading.get_ident())
            then()
            done.set()

        self.hands.give(own)
        assert done.wait(60)


def test_who_has_ended_does_what_comes_next_and_keeps_what_it_has_open() -> None:
    world = World()
    world.work()
    until(lambda: world.hands._idle == 1)
    world.work()

    assert world.worked[0] == world.worked[1]
    assert not world.closed


def test_what_comes_at_once_is_done_at_once() -> None:
    world = World()
    world.work(world.work)

    assert len(set(world.worked)) == 2


def test_who_has_nothing_to_do_closes_what_it_has_and_ends() -> None:
    world = World(keep_seconds=0.01)
    world.work()
    until(lambda: world.closed == world.worked)
    world.work()
    until(lambda: len(world.closed) == 2)

    assert world.hands._idle == 0


def test_who_was_made_ready_waits_for_its_first_work_however_long() -> None:
    """And only for that."""
    world = World(keep_seconds=0.01)
    ready: list[int] = []
    world.hands.prepare(lambda: ready.append(threading.get_ident()))
    until(lambda: world.hands._idle == 1)
    threading.Event().wait(0.05)
    assert not world.closed
    world.work()
    until(lambda: world.closed == ready)

    assert world.worked == ready
