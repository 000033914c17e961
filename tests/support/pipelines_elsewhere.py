"""A pipeline whose partitions are computed by a Spark of several machines.

A file of tests has a fixture `machines` of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lone_pipeline import Ground, Pipeline

from benchmarks.machines import SparkMachines
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.settings import load


@contextmanager
def spark_machines(
    dsn: str, kafka: EmbeddedKafka, folder: Path, workers: int, **more: object
) -> Iterator[SparkMachines]:
    """A Spark of so many workers below a folder, for whom `more` are further settings."""
    overrides = {
        "dsn": dsn,
        "bootstrap_servers": kafka.bootstrap_servers,
        "topic_prefix": f"{folder.name}-",
        **more,
    }
    found = SparkMachines(load(overrides=overrides), folder, workers)
    try:
        yield found
    finally:
        found.kill()


@pytest.fixture(scope="module")
def ground(machines: SparkMachines) -> Iterator[Ground]:
    """Stores of that pipeline."""
    found = Ground(machines.settings)
    yield found
    found.close()


@pytest.fixture(scope="module")
def pipeline(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """It works, and is started again whenever it ends."""
    running = Pipeline(ground.settings, tmp_path_factory.mktemp("pipeline") / "log")
    yield running
    running.kill()
