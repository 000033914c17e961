"""When the driver starts its query again: nobody works on a partition, though Spark thinks so."""

from __future__ import annotations

import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.metrics import Lag
from pipeline.spark import running as program
from pipeline.spark.added import Added
from servioticy.errors import Unavailable
from servioticy.metrics import Registry
from servioticy.settings import Settings, changed


class World:
    """A query of two tasks, a store that knows who claims what, and a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.claims: dict[int, list[int] | None] = {}
        self.running = 2
        self.progress = {0: {0: 7, 1: 9}}
        self.ends: dict[int, dict[int, int]] | None = {0: {0: 99, 1: 99}}
        self.there: dict[int, int | None] = {0: 2}
        self.slots = 3
        self.added = Added(self, lambda: self.slots, 2)
        monkeypatch.setattr(program.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(program.job, "tasks", lambda _spark: self.running)
        self.done: list[str] = []
        monkeypatch.setattr(program.job, "put_away", lambda _spark: self.done.append("put away"))
        monkeypatch.setattr(program, "_tell_ready", lambda: self.done.append("ready"))
        monkeypatch.setattr(program.job, "warm", self.warm)

    def warm(self, _spark: object, partitions: int, _settings: object) -> threading.Thread:
        """While the query goes on: nobody has stopped it yet."""
        thread = threading.Thread(target=lambda: self.done.append(f"warm {partitions}"))
        thread.start()
        return thread

    def awaitTermination(self, _seconds: float) -> bool:  # noqa: N802  Spark's name
        self.now += 1
        return False

    def all_progress(self) -> dict[int, int]:
        return self.progress[max(at for at in self.progress if at <= self.now)]

    def end_offset(self, partition: int) -> int:
        if self.ends is None:
            raise Unavailable("the broker does not answer")
        return self.ends[max(at for at in self.ends if at <= self.now)][partition]

    def partitions(self, _seconds: float) -> int:
        found = self.there[max(at for at in self.there if at <= self.now)]
        if found is None:
            raise Unavailable("the broker does not answer")
        return found

    def held(self) -> list[int]:
        found = self.claims[max(at for at in self.claims if at <= self.now)]
        if found is None:
            raise Unavailable("Postgres does not answer")
        return found

    def watched(self, seconds: int, trigger: str = "realtime") -> float | None:
        """When it gave up on the query, if it did in this time."""
        stopping: Any = SimpleNamespace()
        world = self

        class Stopping(list[int]):
            def __bool__(self) -> bool:
                return world.now >= seconds

        stopping = Stopping()
        offsets = {0: 7, 1: 9}
        settings = changed(Settings(), spark_trigger=trigger)
        lag: Any = Lag(self, Registry())
        store: Any = self
        again = not program._watch(
            None, self, store, lag, offsets, stopping, settings, None, self.added
        )
        assert again
        return self.now if self.now < seconds else None


def test_a_partition_that_nobody_has_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.claims = {0: [], 3: [0, 1], 10: [0]}

    assert world.watched(100) == 15


def test_in_batches_nobody_is_missed_as_nobody_claims_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(monkeypatch)
    world.claims = {0: []}

    assert world.watched(100, "micro-batch") is None
    assert world.done == ["put away", "ready"]


def test_what_the_start_has_left_is_looked_through_before_anybody_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Java would do it half a minute later, and nobody's rows would get on meanwhile."""
    world = World(monkeypatch)
    world.claims = {0: [0], 3: [0, 1]}

    world.watched(10)

    assert world.done == ["put away", "ready"]


def test_it_is_missed_from_the_start_though_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark needs its time to begin."""
    world = World(monkeypatch)
    world.claims = {0: [], 3: [0]}

    found = world.watched(200)

    assert found is not None
    assert found > program.STARTING_SECONDS


def test_between_two_batches_all_wait_for_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that has ended has given up its claim; the next batch waits for the slowest."""
    world = World(monkeypatch)
    world.running = 1
    world.claims = {0: [0, 1], 10: [1]}

    assert world.watched(100) is None


def test_a_store_that_does_not_answer_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    world.claims = {0: [0, 1], 10: None, 60: [0, 1]}

    assert world.watched(100) is None


@pytest.mark.parametrize(
    ("progress", "noticed"),
    [
        ({0: {0: 7, 1: 9}, 20: {0: 8, 1: 9}, 30: {0: 7, 1: 9}}, 35),
        ({0: {0: 7, 1: 8}}, 6),  # before the worker began
        ({0: {0: 7}}, 6),
        ({0: {0: 7, 1: 9}, 20: {0: 8, 1: 12}}, None),
        ({0: {0: 7, 1: 9}, 20: {0: 8, 1: 9}, 30: {0: 7, 1: 9}, 33: {0: 9, 1: 9}}, None),
    ],
)
def test_progress_that_goes_back_is_noticed(
    monkeypatch: pytest.MonkeyPatch, progress: dict[int, dict[int, int]], noticed: int | None
) -> None:
    """Postgres fell. The worker makes up for it at once, if it still has the rows between."""
    world = World(monkeypatch)
    world.claims = {0: [0, 1]}
    world.progress = progress

    assert world.watched(100) == noticed


@pytest.mark.parametrize(
    ("ends", "noticed"),
    [
        ({0: {0: 7, 1: 9}}, None),
        ({0: {0: 7, 1: 9}, 20: {0: 7, 1: 8}}, 20),  # one record of partition 1 is gone
        (None, None),
    ],
)
def test_a_log_that_ends_before_what_is_stored_is_noticed(
    monkeypatch: pytest.MonkeyPatch, ends: dict[int, dict[int, int]] | None, noticed: int | None
) -> None:
    """The broker came back without its last moments; the next start says what is lost."""
    world = World(monkeypatch)
    world.claims = {0: [0, 1]}
    world.ends = ends

    assert world.watched(100) == noticed


@pytest.mark.parametrize("trigger", ["realtime", "micro-batch"])
def test_partitions_that_are_added_are_read_by_another_query(
    monkeypatch: pytest.MonkeyPatch, trigger: str
) -> None:
    world = World(monkeypatch)
    world.claims = {0: [0, 1]}
    world.there = {0: 2, 20: None, 30: 3}

    assert world.watched(100, trigger) == 30
    assert world.added.partitions == 3
    assert "warm 3" not in world.done, "there is no room for both"


@pytest.mark.parametrize(
    ("slots", "trigger"), [(5, "realtime"), (4, "realtime"), (5, "micro-batch")]
)
def test_workers_of_the_next_query_are_there_before_this_one_ends(
    monkeypatch: pytest.MonkeyPatch, slots: int, trigger: str
) -> None:
    """Where there are slots for both; in batches they are free in between anyway."""
    world = World(monkeypatch)
    world.claims, world.slots = {0: [0, 1]}, slots
    world.there = {0: 2, 20: 3}

    assert world.watched(100, trigger) == 20
    assert ("warm 3" in world.done) == (slots == 5 and trigger == "realtime")


def test_without_a_slot_for_each_it_goes_on_with_those_that_it_has(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(monkeypatch)
    world.claims = {0: [0, 1]}
    world.there = {0: 2, 20: 4}

    with caplog.at_level(logging.ERROR, "servioticy.pipeline"):
        assert world.watched(100) is None

    assert [each.message for each in caplog.records] == ["partitions_without_slots"], "once"
    assert world.added.partitions == 2
    world.slots = 4
    assert world.added.look()
