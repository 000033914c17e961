"""Exactly once, at every point where a worker can die, and with two pipelines at once.

A proxy in front of Postgres sees the storing messages go by and kills the worker with
SIGKILL at a chosen point. Afterwards all that is stored is byte for byte what a run without
faults stores, and the emitted updates are complete, in order, repeats being repeats.
"""

from __future__ import annotations

import logging
import random
import signal
from collections.abc import Callable, Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lone_pipeline import SECONDS, Emitted, ForgetfulPostgres, Ground, Pipeline
from postgres_proxy import Fault, nothing
from replays import UPDATES, Replay
from running_platform import until

from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.settings import Settings, changed, load
from servioticy.supervisor.process import Child

BATCH = 20

pytestmark = pytest.mark.timeout(900)


class Expected(NamedTuple):
    """What a run without faults leaves."""

    stored: dict[str, list[Any]]
    emitted: list[tuple[Any, ...]]

    def assert_equal(self, replay: Replay, emitted: Emitted) -> None:
        """The replay has left the same, byte for byte."""
        stored = replay.stored()
        for table, rows in self.stored.items():
            different = [pair for pair in zip_longest(stored[table], rows) if pair[0] != pair[1]]
            assert not different, f"{table}: {different[:3]}"
        assert replay.emitted(emitted) == self.emitted


@pytest.fixture(scope="module")
def ground(module_dsn: str, real_kafka: EmbeddedKafka) -> Iterator[Ground]:
    settings = load(
        overrides={
            "dsn": module_dsn,
            "bootstrap_servers": real_kafka.bootstrap_servers,
            "topic_prefix": "exactly-once-",
            "max_batch_updates": BATCH,
            "tenant_share": 1.0,
            # A new task every so often, with a new count of its failures.
            "batch_seconds": 10,
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
    replay = Replay(ground)
    replay.send()
    replay.finish()
    found = Expected(replay.stored(), replay.emitted(emitted))
    assert len(found.emitted) == len(found.stored["updates"]) > 2 * UPDATES
    assert {row[2] for row in found.stored["verdicts"]} >= {"emitted", "filtered", "script-error"}
    return found


class Killing:
    """A fault: the victim is killed at a point of the n-th storing message from now."""

    def __init__(
        self,
        pipeline: Pipeline,
        victim: str,
        point: str,
        number: int,
        wait_for_emission: Callable[[], None],
    ) -> None:
        self._pipeline = pipeline
        self._victim = victim
        self._point = point
        self._left = number
        self._wait_for_emission = wait_for_emission
        self.done = False

    def __call__(self, point: str, statement: bytes) -> int | None:
        asked = "before" if self._point == "emitted" else self._point
        if point != asked:
            return None
        self._left -= 1
        if self._left > 0:
            return None
        if self._point == "emitted":
            self._wait_for_emission()
        self.done = self._pipeline.signal(self._victim, signal.SIGKILL)
        if self._victim == "driver":
            return None  # its worker lives on for a moment, and may even store
        return len(statement) // 2 if self._point == "half" else 0


POINTS = {
    "before the transaction": "before",
    "in the middle of the updates": "half",
    "after the message, before the answer": "inside",
    "after the commit, before emission": "committed",
    "after emission, before it is noted": "emitted",
}


def in_one_batch(ground: Ground) -> Settings:
    """Settings with one Spark batch: between two, whoever waits may have the partition."""
    return changed(ground.settings, batch_seconds=86_400)


def run_with(fault: Fault, ground: Ground, pipeline: Pipeline) -> Replay:
    pipeline.proxy.fault = nothing
    replay = Replay(ground)
    until(lambda: ground.progress()[0] == ground.log.end_offset(0), SECONDS)
    pipeline.proxy.fault = fault
    replay.send()
    replay.finish()
    pipeline.proxy.fault = nothing
    return replay


@pytest.mark.parametrize("point", POINTS)
def test_deaths_at_this_point_change_nothing(
    point: str, ground: Ground, pipeline: Pipeline, emitted: Emitted, expected: Expected
) -> None:
    """First the worker dies there, later Spark's driver does. Either the batch is stored and
    its emission repeated, or it is computed again."""

    def all_stored_is_emitted() -> bool:
        rows = ground.database.rows("SELECT count(*) FROM updates")[0][0]
        return watching.different() >= rows

    watching = Emitted(ground)
    killings = [
        Killing(pipeline, victim, POINTS[point], 4, lambda: until(all_stored_is_emitted, SECONDS))
        for victim in ("worker", "driver")
    ]

    def fault(at: str, statement: bytes) -> int | None:
        killing = next((each for each in killings if not each.done), None)
        return killing(at, statement) if killing else None

    replay = run_with(fault, ground, pipeline)
    watching.close()

    assert all(each.done for each in killings)
    expected.assert_equal(replay, emitted)


def test_deaths_at_random_moments_change_nothing(
    ground: Ground, pipeline: Pipeline, emitted: Emitted, expected: Expected
) -> None:
    """Whoever dies while the log fills, and however soon after the death before."""
    seed = random.randrange(2**32)
    logging.getLogger("tests").warning("seed %s", seed)  # shown where it fails
    chance = random.Random(seed)
    victims = ["worker", "driver", "program"]
    moments = sorted(chance.sample(range(UPDATES), len(victims)))
    replay = Replay(ground)
    sent = 0
    for moment, victim in zip(moments, victims, strict=True):
        replay.send(moment - sent, first=sent)
        sent = moment
        until(partial(pipeline.signal, victim, signal.SIGKILL), SECONDS)
    replay.send(UPDATES - sent, first=sent)
    replay.finish()

    expected.assert_equal(replay, emitted)


def test_deaths_while_slow_scripts_are_computed_beside_change_nothing(
    ground: Ground, pipeline: Pipeline, emitted: Emitted, expected: Expected
) -> None:
    """Of two tenants each gets what it would get alone, in its order."""
    slow, quick = Replay(ground, slow=True, share=2), Replay(ground, share=2)
    slow.first_offset = quick.first_offset
    for number in range(UPDATES):
        for each in (slow, quick):
            each.send(1, first=number)
    for _ in range(3):
        until(slow.is_put_off, SECONDS)
        until(partial(pipeline.signal, "worker", signal.SIGKILL), SECONDS)
    slow.finish()

    for each in (slow, quick):
        expected.assert_equal(each, emitted)


def test_a_death_is_noticed_though_nothing_follows(
    ground: Ground, pipeline: Pipeline, emitted: Emitted, expected: Expected
) -> None:
    """The last update for a long time must not wait for the next one."""
    pipeline.work_with(in_one_batch(ground))
    replay = Replay(ground)
    until(lambda: ground.progress()[0] == ground.log.end_offset(0), SECONDS)
    killing = Killing(pipeline, "worker", "before", 1, lambda: None)
    pipeline.proxy.fault = lambda at, statement: None if killing.done else killing(at, statement)
    replay.send(1)
    replay.finish()
    pipeline.proxy.fault = nothing
    assert killing.done

    replay.send(UPDATES - 1, first=1)
    replay.finish()

    expected.assert_equal(replay, emitted)


def test_a_postgres_that_forgets_its_last_moments_changes_nothing(
    run_part: Callable[[str, Any], Child],
    real_kafka: EmbeddedKafka,
    expected: Expected,
    tmp_path: Path,
) -> None:
    """The pipeline's commits do not wait for the disk. Progress goes back together with what
    was stored, so that is computed again, whether more updates follow or none."""
    postgres = ForgetfulPostgres(tmp_path / "postgres")
    server = run_part("forgetful", postgres)
    settings = load(
        overrides={
            "dsn": postgres.dsn,
            "bootstrap_servers": real_kafka.bootstrap_servers,
            "topic_prefix": "forgetful-",
            "max_batch_updates": BATCH,
        }
    )
    ground = Ground(settings)
    emitted = Emitted(ground)
    pipeline = Pipeline(settings, tmp_path / "log")
    try:
        replay = Replay(ground)
        half = UPDATES // 2
        for first, before_the_fall in ((0, half - BATCH), (half, half)):
            with ground.forgetting(server):
                replay.send(before_the_fall, first)
                replay.finish()
                pipeline.signal("worker", signal.SIGSTOP)
                stored = ground.progress()
            server = run_part("forgetful", postgres)
            assert ground.progress()[0] < stored[0], "it forgot nothing: this proves nothing"
            replay.send(half - before_the_fall, first + before_the_fall)
            pipeline.signal("worker", signal.SIGCONT)
            replay.finish()

        noticed = ("progress_lost", "query_starts_again")
        assert sum(pipeline.said().count(each) for each in noticed) >= 2
        expected.assert_equal(replay, emitted)
    finally:
        pipeline.kill()
        emitted.close()
        ground.close()


def test_a_second_pipeline_stands_by_and_takes_over(
    ground: Ground,
    pipeline: Pipeline,
    emitted: Emitted,
    expected: Expected,
    tmp_path: Path,
) -> None:
    """One stores, the other waits; when the first is paused and forgotten, the second goes
    on; the first, awake again, is fenced out; when the second is killed, it takes over."""
    settings = in_one_batch(ground)
    pipeline.work_with(settings)
    second = Pipeline(settings, tmp_path / "log")
    try:
        until(lambda: "partition_waits" in second.said(), SECONDS)
        replay = Replay(ground)
        replay.send(UPDATES // 3)
        replay.finish()
        assert second.proxy.stores == 0

        pipeline.signal("worker", signal.SIGSTOP)
        pipeline.proxy.release_locks()
        replay.send(UPDATES // 3, first=UPDATES // 3)
        replay.finish()
        assert second.proxy.stores > 0
        tried = pipeline.proxy.stores
        pipeline.signal("worker", signal.SIGCONT)
        replay.send(10, first=2 * UPDATES // 3)
        replay.finish()
        until(lambda: pipeline.proxy.stores > tried, SECONDS)

        second.kill()
        replay.send(UPDATES, first=2 * UPDATES // 3 + 10)
        replay.finish()
    finally:
        second.kill()

    expected.assert_equal(replay, emitted)
