"""Where Postgres has forgotten the newest batches, the worker takes their rows again by itself."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pipeline.batching.means import Means
from pipeline.errors import ProgressLost
from pipeline.spark import worker
from pipeline.spark.inbox import Inbox
from pipeline.spark.worker import Kept
from pipeline.work import Row

ROWS = [Row(offset, b"x") for offset in range(6)]


class Store:
    """Progress, and what happens when it has been moved so far."""

    def __init__(self, falls_at: int, forgets: int) -> None:
        self.progress = 0
        self.falls_at, self.forgets = falls_at, forgets


class Task:
    """Begins where the store stands, as one of the pipeline does; a row at a time."""

    patience = 0.0
    is_computing = False

    def __init__(self, store: Store) -> None:
        self.store = store
        self.reached = store.progress
        self.taken: list[int] = []
        self.means = Means()

    def take(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row.offset < self.store.progress and row.offset < self.reached:
                continue
            if self.store.progress == self.store.falls_at:
                self.store.falls_at = -1
                self.store.progress -= self.store.forgets
            if row.offset != self.store.progress:
                raise ProgressLost(0, self.store.progress, row.offset)
            self.taken.append(row.offset)
            self.store.progress += 1

    def rest(self) -> None:
        pass

    def end(self) -> None:
        pass

    def release(self) -> None:
        pass


def run(store: Store, inbox: Inbox) -> list[list[int]]:
    """What each task took that there was."""
    tasks: list[Task] = []

    def make(_partition: int):
        tasks.append(Task(store))
        return tasks[-1], lambda: None

    kept = Kept(make)
    while worker._has_to_go_back(kept, 0, inbox, 2, in_batches=False):
        kept.drop()
    return [each.taken for each in tasks]


@pytest.fixture
def inbox() -> Inbox:
    found = Inbox()
    for row in ROWS:
        found.put([row], 1)
    found.end()
    return found


def test_another_task_takes_what_was_forgotten_again(inbox: Inbox) -> None:
    """And what follows, to the last row."""
    assert run(Store(falls_at=3, forgets=2), inbox) == [[0, 1, 2], [1, 2, 3, 4, 5]]


def test_what_is_not_kept_has_to_come_from_the_log(
    inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.spark.inbox.KEPT_BYTES", 1)

    with pytest.raises(ProgressLost):
        run(Store(falls_at=3, forgets=2), inbox)
