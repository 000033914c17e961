"""Who comes next, and who has waited too long."""

from __future__ import annotations

import threading

import pytest
from waiting import until

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
            with lock.held(name, Allowance()):
                order.append(name)
                first_has_it.set()
                if len(order) == 1:
                    until(lambda: len(lock._waiting) == 1)

    long = threading.Thread(target=many, args=("long", 3))
    long.start()
    first_has_it.wait()
    many("short", 1)
    long.join()

    assert order == ["long", "short", "long", "long"]


def test_it_goes_round_whatever_the_number_of_threads() -> None:
    """Five documents of one tenant keep that of another waiting for one turn of theirs."""
    lock = FairLock()
    order: list[str] = []
    waiting: list[threading.Thread] = []

    def one(name: str) -> None:
        with lock.held(name, Allowance()):
            order.append(name)

    with lock.held("many", Allowance()):
        for name in [*["many"] * 5, "few"]:
            waiting.append(threading.Thread(target=one, args=(name,)))
            waiting[-1].start()
            until(lambda: sum(map(len, lock._waiting.values())) == len(waiting))
    for each in waiting:
        each.join()

    assert order == ["few", *["many"] * 5]


def test_it_goes_round_among_those_who_ask_again() -> None:
    """Who has had a turn is behind the other one with all its threads, however many wait."""
    lock = FairLock()
    order: list[str] = []
    turns, threads = 40, ["many"] * 5 + ["few"]
    workers: list[threading.Thread] = []

    def waiting() -> int:
        return sum(map(len, lock._waiting.values()))

    def again(name: str) -> None:
        while len(order) < turns:
            with lock.held(name, Allowance()):
                order.append(name)
                until(lambda: waiting() == len(threads) - 1 or len(order) >= turns)

    with lock.held("another", Allowance()):
        for name in threads:
            workers.append(threading.Thread(target=again, args=(name,)))
            workers[-1].start()
            until(lambda: waiting() == len(workers))
    for each in workers:
        each.join()

    assert order[:turns] == ["many", "few"] * (turns // 2)


def test_a_lock_that_does_not_come_in_time_is_given_up() -> None:
    """And nobody waits for the one who has left."""
    lock = FairLock()
    with lock.held("one", Allowance()):
        with pytest.raises(TookTooLong), lock.held("other", Allowance(0.01)):
            pass
        assert not lock._waiting

    with lock.held("one", Allowance(0.0)):
        pass


def test_the_lock_is_released_after_an_error() -> None:
    """What fails in it is not the next one's."""
    lock = FairLock()
    with pytest.raises(ValueError, match="mine"), lock.held("one", Allowance()):
        raise ValueError("mine")

    with lock.held("other", Allowance(0.0)):
        pass
