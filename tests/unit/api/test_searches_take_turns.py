"""Of all searches of a process one takes a step at a time, tenants by turns."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from waiting import until

from api.stepping.step import Step
from api.stepping.turns import in_turns
from servioticy.errors import Unavailable
from servioticy.turns import Turns

STEPS = 5
Found = Iterator[Step]
NOTHING = Step(b"")


def listens() -> bool:
    return True


class Steps:
    """Notes whose steps there were, and how many at once."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.most = 0
        self.gate = threading.Event()
        self._inside = 0

    def of(self, tenant: int) -> Found:
        for _ in range(STEPS):
            self._inside += 1
            self.most = max(self.most, self._inside)
            self.order.append(tenant)
            self.gate.wait(10)
            self._inside -= 1
            yield NOTHING


def test_one_computes_at_a_time_and_who_searches_much_delays_another_by_a_step() -> None:
    steps, turns = Steps(), Turns(10)

    def search(tenant: int) -> None:
        for _ in in_turns(steps.of(tenant), turns, tenant, listens):
            pass

    def begun(tenant: int) -> threading.Thread:
        thread = threading.Thread(target=search, args=(tenant,), daemon=True)
        thread.start()
        return thread

    threads = [begun(1)]
    until(lambda: steps.order == [1])
    for waiting, tenant in enumerate((1, 1, 1, 2), 1):
        threads.append(begun(tenant))
        until(lambda so_many=waiting: sum(map(len, turns._waiting.values())) == so_many)
    steps.gate.set()
    for each in threads:
        each.join(10)

    assert steps.most == 1
    assert len(steps.order) == STEPS * len(threads)
    assert 2 in steps.order[:3], "three others of that tenant came before"


def test_who_does_not_get_a_turn_in_time_is_told_so_and_nobody_waits_for_him() -> None:
    steps, turns = Steps(), Turns(0.01)
    steps.gate.set()
    with turns.turn(1), pytest.raises(Unavailable):
        next(in_turns(steps.of(2), turns, 2, listens))

    assert steps.order == []
    assert len(list(in_turns(steps.of(2), turns, 2, listens))) == STEPS


def test_a_search_that_fails_gives_its_turn_back() -> None:
    def failing() -> Found:
        yield NOTHING
        raise ZeroDivisionError

    turns = Turns(0.01)
    with pytest.raises(ZeroDivisionError):
        list(in_turns(failing(), turns, 1, listens))

    assert len(list(in_turns(iter([NOTHING]), turns, 2, listens))) == 1


def test_who_has_gone_takes_no_more_steps_and_its_search_ends() -> None:
    steps, here = Steps(), [True, True, False]
    steps.gate.set()
    found = in_turns(steps.of(1), Turns(1), 1, lambda: here.pop(0))
    with pytest.raises(Unavailable, match="nobody waits"):
        list(found)

    assert steps.order == [1, 1]
