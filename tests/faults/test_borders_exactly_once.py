"""What crosses borders between tenants comes once, wherever on its way a worker dies.

As in test_exactly_once.py: a proxy in front of Postgres kills at a chosen point, and all that is
stored and emitted is what a run without faults leaves. The partition sends to itself here, as each
does to every one.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from border_replays import READERS, BorderReplay
from lone_pipeline import SECONDS, Emitted, ForgetfulPostgres, Ground, Pipeline
from postgres_proxy import Fault, nothing
from running_platform import until

from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.settings import load

UPDATES = 30
BATCH = READERS - 1
"""Trees of one transaction: those of a record that crosses are of several."""

pytestmark = pytest.mark.timeout(900)

Reached = Callable[[str, bytes, Ground], bool]
"""Whether a point of storing, with the message that is on its way, is the wanted one."""


def _in_the_middle(point: str, _statement: bytes, ground: Ground) -> bool:
    if point != "stored":
        return False
    rows = ground.database.rows("SELECT next_tree FROM progress")
    return bool(rows) and rows[0][0] > 0


POINTS: Mapping[str, Reached] = {
    "after the commit, before it is sent over": lambda point, statement, _: (
        point == "stored" and b"EXECUTE store_crossings" in statement
    ),
    "after it was sent over, before that is noted": lambda point, statement, _: (
        point == "asked" and b"EXECUTE store_marks" in statement
    ),
    "between two tenants' trees of one record": _in_the_middle,
}


class Expected(NamedTuple):
    """What a run without faults leaves."""

    stored: dict[str, list[Any]]
    emitted: dict[str, list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def ground(module_dsn: str, real_kafka: EmbeddedKafka) -> Iterator[Ground]:
    settings = load(
        overrides={
            "dsn": module_dsn,
            "bootstrap_servers": real_kafka.bootstrap_servers,
            "topic_prefix": "borders-",
            "max_batch_updates": BATCH,
            "tenant_share": 1.0,
            "batch_seconds": 30,
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
def pipeline(ground: Ground, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    running = Pipeline(ground.settings, tmp_path_factory.mktemp("pipeline") / "log")
    yield running
    running.kill()


@pytest.fixture(scope="module")
def expected(ground: Ground, pipeline: Pipeline, emitted: Emitted) -> Expected:
    replay = BorderReplay(ground)
    replay.send(UPDATES)
    replay.finish()
    found = Expected(replay.stored(), replay.emitted(emitted))
    for stream in ("pair", "count"):
        for number in range(READERS):
            told = found.emitted[f"-{number}/{stream}"]
            assert [timestamp for timestamp, _ in told] == list(range(1, UPDATES + 1))
    return found


class Killing:
    """A fault: the victim is killed where the point is reached for the n-th time from now."""

    def __init__(
        self, pipeline: Pipeline, ground: Ground, victim: str, reached: Reached, number: int
    ) -> None:
        self._pipeline, self._ground = pipeline, ground
        self._victim, self._reached = victim, reached
        self._left = number
        self.done = False

    def __call__(self, point: str, statement: bytes) -> int | None:
        if not self._reached(point, statement, self._ground):
            return None
        self._left -= 1
        if self._left > 0:
            return None
        self.done = self._pipeline.signal(self._victim, signal.SIGKILL)
        # Where the driver dies its worker lives on for a moment, and may even send.
        return None if self._victim == "driver" else 0


def run_with(fault: Fault, ground: Ground, pipeline: Pipeline) -> BorderReplay:
    pipeline.proxy.fault = nothing
    replay = BorderReplay(ground)
    pipeline.proxy.fault = fault
    replay.send(UPDATES)
    replay.finish()
    pipeline.proxy.fault = nothing
    return replay


@pytest.mark.parametrize("point", POINTS)
def test_deaths_at_this_point_of_a_crossing_change_nothing(
    point: str, ground: Ground, pipeline: Pipeline, emitted: Emitted, expected: Expected
) -> None:
    """First the worker dies there, later Spark's driver does."""
    killings = [
        Killing(pipeline, ground, victim, POINTS[point], 3) for victim in ("worker", "driver")
    ]

    def fault(at: str, statement: bytes) -> int | None:
        killing = next((each for each in killings if not each.done), None)
        return killing(at, statement) if killing else None

    replay = run_with(fault, ground, pipeline)

    assert all(each.done for each in killings)
    assert replay.stored() == expected.stored
    assert replay.emitted(emitted) == expected.emitted


def test_a_postgres_that_forgets_what_crossed_changes_nothing(
    run_part: Callable[[str, Any], Any],
    real_kafka: EmbeddedKafka,
    expected: Expected,
    tmp_path: Path,
) -> None:
    """Progress goes back behind records that have been sent over: they come again, and count once;
    what subscribers have got stays as it was."""
    postgres = ForgetfulPostgres(tmp_path / "postgres")
    server = run_part("forgetful", postgres)
    settings = load(
        overrides={
            "dsn": postgres.dsn,
            "bootstrap_servers": real_kafka.bootstrap_servers,
            "topic_prefix": "borders-forgotten-",
            "max_batch_updates": BATCH,
        }
    )
    ground = Ground(settings)
    emitted = Emitted(ground)
    pipeline = Pipeline(settings, tmp_path / "log")
    try:
        replay = BorderReplay(ground)
        replay.send(UPDATES // 3)
        replay.finish()
        sent, forgot = UPDATES // 3, False
        while not forgot:  # late work waits for the disk, and all before it is there, too
            assert sent < 2 * UPDATES // 3, "it forgot nothing: this proves nothing"
            with ground.forgetting(server):
                replay.send(UPDATES // 9, sent)
                replay.finish()
                pipeline.signal("worker", signal.SIGSTOP)
                stored = ground.progress()
            run_part("forgetful", postgres)
            forgot = ground.progress()[0] < stored[0]
            pipeline.signal("worker", signal.SIGCONT)
            sent += UPDATES // 9
        replay.send(UPDATES - sent, sent)
        until(lambda: "progress_lost" in pipeline.said(), SECONDS)
        replay.finish()

        assert replay.stored() == expected.stored
        assert replay.emitted(emitted) == expected.emitted
    finally:
        pipeline.kill()
        emitted.close()
        ground.close()
