"""The same laws where Spark takes the log in batches, and where it ends with what is there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from faults.test_exactly_once import POINTS, Expected, Killing, run_with
from lone_pipeline import SECONDS, Emitted, Ground, Pipeline
from replays import UPDATES, Replay
from running_platform import until

from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.settings import Settings, changed, load, to_environment

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def ground(module_dsn: str, real_kafka: EmbeddedKafka) -> Iterator[Ground]:
    settings = load(
        overrides={
            "dsn": module_dsn,
            "bootstrap_servers": real_kafka.bootstrap_servers,
            "topic_prefix": "batches-of-spark-",
            "max_batch_updates": 20,
            "tenant_share": 1.0,
            "spark_trigger": "micro-batch",
        }
    )
    found = Ground(settings)
    yield found
    found.close()


@pytest.fixture(scope="module")
def emitted(ground: Ground) -> Iterator[Emitted]:
    reader = Emitted(ground)
    yield reader
    reader.close()


@pytest.fixture(scope="module")
def expected(
    ground: Ground, emitted: Emitted, tmp_path_factory: pytest.TempPathFactory
) -> Expected:
    """What the program leaves that takes what is there and ends, without faults."""
    replay = Replay(ground)
    replay.send()
    run = take_what_is_there(ground.settings, tmp_path_factory.mktemp("once"))
    assert run.returncode == 0, run.stdout[-3000:]
    assert ground.progress() == (ground.log.end_offset(0),) * 2
    found = Expected(replay.stored(), replay.emitted(emitted))
    assert len(found.emitted) == len(found.stored["updates"]) > 2 * UPDATES
    return found


@pytest.fixture(scope="module")
def pipeline(
    ground: Ground, expected: Expected, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pipeline]:
    """Micro-batches, begun when the other program has ended."""
    running = Pipeline(ground.settings, tmp_path_factory.mktemp("pipeline") / "log")
    yield running
    running.kill()


def take_what_is_there(settings: Settings, scratch: Path) -> subprocess.CompletedProcess[str]:
    chosen = to_environment(changed(settings, spark_trigger="available-now"))
    return subprocess.run(
        [sys.executable, "-P", "-m", "pipeline"],
        env={**os.environ, **chosen, "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_what_is_there_is_taken_once(ground: Ground, expected: Expected, tmp_path: Path) -> None:
    """A second run has nothing to do, and ends as well."""
    before = ground.progress()

    assert take_what_is_there(ground.settings, tmp_path).returncode == 0
    assert ground.progress() == before


@pytest.mark.parametrize("point", POINTS)
def test_deaths_change_nothing(
    point: str, ground: Ground, pipeline: Pipeline, emitted: Emitted, expected: Expected
) -> None:
    """First of the worker, later of the driver: rows, and the order of what is emitted, are those
    of the run without faults.
    """
    count = emitted.different
    before = count()
    wait = partial(until, lambda: count() > before, SECONDS)
    killings = [Killing(pipeline, each, POINTS[point], 3, wait) for each in ("worker", "driver")]

    def fault(at: str, statement: bytes) -> int | None:
        killing = next((each for each in killings if not each.done), None)
        return killing(at, statement) if killing else None

    replay = run_with(fault, ground, pipeline)

    assert all(each.done for each in killings)
    expected.assert_equal(replay, emitted)
