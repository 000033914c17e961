"""A worker keeps what it knows of one partition, and lets go of it for another."""

from __future__ import annotations

from pipeline.spark.worker import Kept


def test_a_partition_that_goes_elsewhere_is_given_up_with_all_that_is_remembered() -> None:
    """Spark moves partitions between workers, which live as long as the platform."""
    made, gone = [], []

    def make(partition: int):
        made.append(partition)
        return f"task {partition}", lambda: gone.append(partition)

    kept = Kept(make)

    assert [kept.of(each) for each in (0, 0, 1, 1, 0)] == ["task 0"] * 2 + ["task 1"] * 2 + [
        "task 0"
    ]
    assert made == [0, 1, 0]
    assert gone == [0, 1]
