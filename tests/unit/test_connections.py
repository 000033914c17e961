"""Connections that threads share: the one used last comes first, and few are kept for nothing."""

from __future__ import annotations

from collections.abc import Callable

from servioticy.storage.connections import IDLE_SECONDS, KEPT, Connection, Shared


class Raw:
    """In place of one of psycopg2."""

    closed = 0

    def close(self) -> None:
        self.closed = 1


def connections(count: int) -> list[Connection]:
    return [Connection(Raw()) for _ in range(count)]


def test_the_one_used_last_is_given_first() -> None:
    """So those that were only needed at once become old."""
    shared, (one, other) = Shared(), connections(2)
    shared.give(one)
    shared.give(other)

    assert [shared.take(), shared.take(), shared.take()] == [other, one, None]


def test_one_that_was_closed_is_given_to_nobody() -> None:
    shared, (one, other) = Shared(), connections(2)
    shared.give(one)
    shared.give(other)
    one.close()
    other.close()
    shared.give(other)

    assert shared.take() is None


def test_those_unused_for_long_are_closed_but_for_a_few() -> None:
    """Each when its time is over and none before, by one thread that ends then."""
    now, begun, open_at = [0.0], list[Callable[[], None]](), list[tuple[float, int]]()
    every = connections(KEPT + 3)

    def sleep(seconds: float) -> None:
        open_at.append((now[0], sum(each.is_open for each in every)))
        now[0] += seconds

    shared = Shared(clock=lambda: now[0], sleep=sleep, begin=begun.append)
    for each in every[:-1]:
        shared.give(each)
    now[0] = 4.0
    shared.give(every[-1])
    assert len(begun) == 1
    begun[0]()

    assert open_at == [(4.0, KEPT + 3)]
    assert (now[0], [each.is_open for each in every]) == (
        IDLE_SECONDS,
        [False] * 3 + [True] * KEPT,
    )
    shared.give(*connections(1))
    assert len(begun) == 2, "there is one too many again"


def test_while_few_are_there_nothing_runs() -> None:
    begun = list[Callable[[], None]]()
    shared = Shared(begin=begun.append)
    for each in connections(KEPT):
        shared.give(each)

    assert begun == []


def test_all_unused_ones_are_closed_where_the_server_has_gone() -> None:
    shared, every = Shared(), connections(2)
    for each in every:
        shared.give(each)

    shared.close()

    assert [each.is_open for each in every] == [False, False]
    assert shared.take() is None
