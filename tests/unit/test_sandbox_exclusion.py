"""One thread at a time has a turn, and the others have the lock while it waits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

from sandbox.host.exclusion import Exclusion


def test_a_turn_is_of_one_thread_though_it_lets_others_have_the_lock() -> None:
    exclusion, within, most = Exclusion(), [], []
    begins = Barrier(4)

    def work(number: int) -> None:
        begins.wait()
        for _ in range(50):
            with exclusion, exclusion.of("tenant"):
                within.append(number)
                with exclusion.elsewhere():
                    most.append(len(within))
                within.remove(number)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))

    assert most == [1] * 200


def test_turns_of_different_things_do_not_wait_for_each_other() -> None:
    exclusion, entered, ends = Exclusion(), Event(), Event()

    def work() -> None:
        with exclusion, exclusion.of("a"), exclusion.elsewhere():
            entered.set()
            assert ends.wait(60)

    with ThreadPoolExecutor(1) as threads:
        done = threads.submit(work)
        assert entered.wait(60)
        with exclusion, exclusion.of("b"):
            assert exclusion.has("a")
        assert not done.done()
        ends.set()
        done.result()
    with exclusion:
        assert not exclusion.has("a")
        assert not exclusion.has("b")


def test_who_takes_many_turns_in_a_row_lets_others_between() -> None:
    """It holds the lock from the end of one to the beginning of the next."""
    exclusion, order = Exclusion(), []
    begun, waits = Event(), Event()

    def takes_many() -> None:
        with exclusion:
            for _ in range(5):
                with exclusion.of("checker"):
                    order.append("many")
                    with exclusion.elsewhere():
                        begun.set()
                        assert waits.wait(60)

    def takes_one() -> None:
        with exclusion:
            waits.set()
            with exclusion.of("checker"):
                order.append("one")

    with ThreadPoolExecutor(2) as threads:
        many = threads.submit(takes_many)
        assert begun.wait(60)
        threads.submit(takes_one).result(60)
        many.result(60)
    assert order == ["many", "one", "many", "many", "many", "many"]
