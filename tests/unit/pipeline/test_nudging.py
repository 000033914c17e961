"""Where Spark runs batches a record that does nothing begins one for work that needs none."""

from __future__ import annotations

from pipeline.spark.nudging import NOTHING, PAUSE_SECONDS, Nudging
from servioticy.domain.records import LogRecord


class World:
    """Two partitions, and what is to be done there."""

    def __init__(self) -> None:
        self.ends = [5, 5]
        self.left: set[int] = set()
        self.now = 1000.0
        self.nudging = Nudging(self, self, self.ends.__getitem__, lambda: self.now)

    def append(self, partition: int, record: LogRecord) -> int:
        assert record == NOTHING
        self.ends[partition] += 1
        return self.ends[partition] - 1

    def left_to_do(self, now: int) -> set[int]:
        assert now == self.now * 1000
        return self.left


def test_where_there_is_work_one_record_is_under_way() -> None:
    world = World()
    world.left = {1}
    world.nudging.look({0: 5, 1: 5})
    world.nudging.look({0: 5, 1: 5})
    assert world.ends == [5, 6]

    world.nudging.look({0: 5, 1: 6})
    assert world.ends == [5, 7]


def test_without_work_there_is_one_a_minute() -> None:
    world = World()
    for _ in range(int(3 * PAUSE_SECONDS)):
        world.nudging.look(dict(enumerate(world.ends)))
        world.now += 1

    assert world.ends == [7, 7]


def test_what_is_not_stored_yet_is_a_record_enough() -> None:
    world = World()
    world.left = {0, 1}
    world.nudging.look({0: 3, 1: 4})

    assert world.ends == [5, 5]
