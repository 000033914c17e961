"""Who comes next, and who has waited too long."""

from __future__ import annotations

import threading

import pytest

from sandbox import TookTooLong
from sandbox.host.allowance import Allowance
from sandbox.host.fair_lock import FairLock


def test_who_releases_it_comes_after_all_that_wait() -> None:
    """Otherwise a long document keeps everybody waiting to its end."""
    lock = FairLock()
    order: list[str] = []
    first_has_it = threading.Event()

    def many(name: str, count: int) -> None:
        for _ in range(count):
            with lock.held(Allowance()):
                order.append(name)
                first_has_it.set()
                if len(order) == 1:
                    _until(lambda: len(lock._waiting) == 1)

    long = threading.Thread(target=many, args=("long", 3))
    long.start()
    first_has_it.wait()
    many("short", 1)
    long.join()

    assert order == ["long", "short", "long", "long"]


def test_a_lock_that_does_not_come_in_time_is_given_up() -> None:
    """And nobody waits for the one who has left."""
    lock = FairLock()
    with lock.held(Allowance()):
        with pytest.raises(TookTooLong), lock.held(Allowance(0.01)):
            pass
        assert not lock._waiting

    with lock.held(Allowance(0.0)):
        pass


def test_the_lock_is_released_after_an_error() -> None:
    """What fails in it is not the next one's."""
    lock = FairLock()
    with pytest.raises(ValueError, match="mine"), lock.held(Allowance()):
        raise ValueError("mine")

    with lock.held(Allowance(0.0)):
        pass


def _until(condition: object) -> None:
    assert callable(condition)
    waiting = threading.Event()
    for _ in range(2000):
        if condition():
            return
        waiting.wait(0.005)
    raise AssertionError("waited in vain")
