"""A worker of somebody's Spark, which has nothing of ours: it computes by what is packed.

It is in a mount namespace without the checkout, its environment and the cache of downloads; it has
Spark's jars, at a path of its own, a Python, and a Java.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lone_pipeline import SECONDS, Ground, Pipeline
from pipelines_elsewhere import ground, pipeline, spark_machines
from replays import UPDATES, Replay
from running_platform import until

from benchmarks.machines import Machine, SparkMachines, below
from command.packing import packed
from command.packing.installed import HERE
from pipeline.spark import standalone
from servioticy.embedded import java, unprivileged
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.settings import Settings, changed, load

__all__ = ["ground", "pipeline"]

pytestmark = pytest.mark.timeout(1200)

SPARK = Path("/mnt/spark")
EXECUTOR = "CoarseGrainedExecutorBackend"
DAEMON = "-m pipeline.spark.daemon"


class BareWorker(Machine):
    """A worker of Spark on a machine that has nothing of ours."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        place = standalone.Place("127.0.0.2", 0, folder / "work")
        own = changed(Settings(), spark_secret=settings.spark.secret)
        master = settings.spark.master
        command, environment = standalone.worker(own, place, master, 1, "1g")
        here, there = str(java.pyspark_jars().parent), str(SPARK)
        (folder / "bin").mkdir()
        python = folder / "bin" / f"python{packed.VERSION}"
        python.symlink_to(Path(sys.executable).resolve())
        kept = {"PATH": f"{python.parent}:/usr/bin:/bin", "TMPDIR": str(folder)}
        for key, value in environment.items():
            if key.startswith(("SPARK_", "JAVA_")):
                kept[key] = value.replace(here, there)
        user = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")
        outside = ("unshare", "--user", "--map-root-user", "--mount", "--")
        words = [*outside, "sh", "-ec", _hiding(own, here), "sh", *user]
        moved = [each.replace(here, there) for each in command]
        super().__init__([*words, *moved], kept, folder / "log", folder)


def _hiding(settings: Settings, spark: str) -> str:
    cache = settings.embedded.jars_path.parent
    hidden = [each for each in (HERE, Path(sys.prefix), cache) if each.exists()]
    return "\n".join(
        [
            "mount -t tmpfs none /mnt",
            f"mkdir {SPARK}",
            f"mount --bind {shlex.quote(spark)} {SPARK}",
            *(f"mount -t tmpfs none {shlex.quote(str(each))}" for each in hidden[:1]),
            *(f"[ ! -d {each} ] || mount -t tmpfs none {each}" for each in hidden[1:]),
            'exec "$@"',
        ]
    )


@pytest.fixture(scope="module")
def machines(
    module_dsn: str, real_kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkMachines]:
    if not unprivileged.namespaces_allowed():
        pytest.skip("this machine lets us make no mount namespaces to hide the checkout in")
    folder = tmp_path_factory.mktemp("packed")
    packed.pack(load(), folder / "environment.tar.gz")
    archive = str(folder / "environment.tar.gz")
    with spark_machines(module_dsn, real_kafka, folder, 0, spark_archive=archive) as found:
        found.workers.append(BareWorker(found.settings, tmp_path_factory.mktemp("bare")))
        yield found


def test_it_computes_by_what_is_packed_and_by_nothing_else(
    ground: Ground, pipeline: Pipeline, machines: SparkMachines
) -> None:
    (worker,) = machines.workers
    replay = Replay(ground)
    replay.send()
    replay.finish()

    assert len(replay.stored()["updates"]) > 2 * UPDATES
    (daemon, *_) = worker.below(DAEMON)
    disk = Path(f"/proc/{daemon}/root")
    assert not os.listdir(disk / HERE.relative_to("/"))
    (name, *_) = Path(f"/proc/{daemon}/cmdline").read_text("utf-8").split("\0")
    assert name.endswith(f"/servioticy/bin/python{packed.VERSION}")
    assert not below(pipeline.process.pid, DAEMON)


def test_an_executor_that_dies_gets_it_again(
    ground: Ground, pipeline: Pipeline, machines: SparkMachines
) -> None:
    """Into another folder, and nothing is lost."""
    replay = Replay(ground)
    replay.send(UPDATES // 2)
    until(lambda: ground.progress()[0] > replay.first_offset, SECONDS)
    machines.signal(EXECUTOR, signal.SIGKILL)
    killed, before = time.monotonic(), ground.progress()[0]
    replay.send(UPDATES - UPDATES // 2, first=UPDATES // 2)
    until(lambda: ground.progress()[0] > before, SECONDS)
    sys.stderr.write(f"an executor is back after {time.monotonic() - killed:.1f} s\n")
    replay.finish()

    assert len(replay.stored()["updates"]) > 2 * UPDATES
