"""Whether a machine reaches the store, before its task claims a partition."""

from __future__ import annotations

import pytest

from pipeline.spark.reaching import SECONDS, end_executor, reach
from servioticy.errors import Unavailable


class Store:
    """One that answers from a time on; each question takes a second."""

    def __init__(self, answers_at: float) -> None:
        self.now = 0.0
        self._answers_at = answers_at

    def ask(self) -> None:
        self.now += 1.0
        if self.now < self._answers_at:
            raise Unavailable("no route")

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_it_waits_for_a_store_that_starts() -> None:
    store = Store(answers_at=SECONDS - 1)

    reach(store.ask, lambda: store.now, store.sleep)

    assert store.now < SECONDS + 2


def test_it_gives_up_where_there_is_no_answer() -> None:
    store = Store(answers_at=10 * SECONDS)

    with pytest.raises(Unavailable):
        reach(store.ask, lambda: store.now, store.sleep)

    assert SECONDS <= store.now < SECONDS + 3


def test_what_is_no_executor_is_not_ended() -> None:
    """As in a Spark inside one process, or in a test."""
    end_executor()
