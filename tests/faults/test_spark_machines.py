"""Exactly once where Spark's workers are other machines, whichever of its parts dies.

A master and two workers at addresses of their own, with folders of their own, that share a secret.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial

import pytest
from faults.test_exactly_once import Expected
from lone_pipeline import SECONDS, Emitted, Ground, Pipeline
from pipelines_elsewhere import ground, pipeline, spark_machines
from replays import UPDATES, Replay
from running_platform import until

from benchmarks.machines import SparkMachines, below, send
from servioticy.embedded.kafka import EmbeddedKafka

__all__ = ["ground", "pipeline"]

pytestmark = pytest.mark.timeout(1200)

EXECUTOR = "CoarseGrainedExecutorBackend"
TASKS = "pyspark.worker"
VICTIMS = ("an executor", "the workers' machines", "the driver and the master")


@pytest.fixture(scope="module")
def machines(
    module_dsn: str, real_kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkMachines]:
    own = {"max_batch_updates": 20, "tenant_share": 1.0}
    folder = tmp_path_factory.mktemp("machines")
    with spark_machines(module_dsn, real_kafka, folder, 2, **own) as found:
        yield found


@pytest.fixture(scope="module")
def emitted(ground: Ground) -> Iterator[Emitted]:
    reader = Emitted(ground)
    yield reader
    reader.close()


@pytest.fixture(scope="module")
def expected(ground: Ground, pipeline: Pipeline, emitted: Emitted) -> Expected:
    """What is left where nobody dies."""
    replay = Replay(ground)
    replay.send()
    replay.finish()
    found = Expected(replay.stored(), replay.emitted(emitted))
    assert len(found.emitted) == len(found.stored["updates"]) > 2 * UPDATES
    return found


def test_partitions_are_computed_by_the_workers_alone(
    machines: SparkMachines, expected: Expected, pipeline: Pipeline
) -> None:
    assert machines.signal(TASKS, signal.SIGCONT)
    assert not below(pipeline.process.pid, TASKS)


@pytest.mark.parametrize("victim", VICTIMS)
def test_a_death_changes_nothing(
    victim: str,
    machines: SparkMachines,
    ground: Ground,
    pipeline: Pipeline,
    emitted: Emitted,
    expected: Expected,
) -> None:
    """It dies in the middle of the log, and the rest comes afterwards."""
    replay = Replay(ground)
    half = UPDATES // 2
    replay.send(half)
    until(lambda: ground.progress()[0] > replay.first_offset, SECONDS)
    _kill(victim, machines, pipeline)
    replay.send(UPDATES - half, first=half)
    replay.finish()

    expected.assert_equal(replay, emitted)


def _kill(victim: str, machines: SparkMachines, pipeline: Pipeline) -> None:
    if victim == "an executor":
        until(partial(machines.signal, EXECUTOR, signal.SIGKILL), SECONDS)
    elif victim == "the workers' machines":
        for number, each in enumerate(machines.workers):
            each.kill()
            machines.again(number)
    else:
        (driver,) = below(pipeline.process.pid, "pyspark-shell")
        send(driver, signal.SIGKILL)
        machines.master.kill()
        machines.master_again()
