"""What Spark is told at its start. Why each line is needed: decision 0001."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pipeline.spark.here import OWN_PLACES
from servioticy.settings.sections import Spark

_SPARK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    # A row must not wait for others to fill a buffer.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.execution.pandas.udf.buffer.size": "4",
    # Nor for the next one to be asked for, as in code that is generated for a whole stage.
    "spark.sql.codegen.wholeStage": "false",
    # A task in real-time mode holds its slot for ever and replays nothing stored.
    "spark.task.maxFailures": "4",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "pipeline.spark.daemon",
    # These two let the query have the workers that were started for it (job.warm): Spark gives
    # one only where the environment is the same, and it has both of them in it.
    "spark.buffer.size": "4",
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


_ELSEWHERE = {
    # By name: each machine has its own, first on the path of its worker.
    "spark.pyspark.python": "python",
    # What does not answer for so long is taken for dead, and its task goes to another one. The
    # claim of the partition keeps out an executor that was only cut off.
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "4s",
    # An executor begins anew as soon as it ends, however often in a row.
    "spark.deploy.maxExecutorRetries": "-1",
}
"""On other machines than the driver's."""

_OWN_PLACES = f"spark.executorEnv.{OWN_PLACES}"

UNPACKED = "servioticy"
"""Where a packed environment is, below the folder that an executor works in."""

ADDED = 8
"""Partitions that may be added before a local Spark has to be started again."""

_IN_BATCHES = {
    # All that waits is there at once, so rows go together.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}


def of_java(
    settings: Spark, jars: Sequence[Path], scratch: Path, java_options: Sequence[str] = ()
) -> dict[str, str]:
    """What has to be known when the driver's Java starts; what the settings say themselves wins.

    The driver's Java gets these options, and those of the settings.
    """
    options = [f'"{each}"' for each in (*java_options, f"-Djava.io.tmpdir={scratch}")]
    return {
        "spark.driver.host": settings.driver_host,
        "spark.driver.bindAddress": settings.driver_host,
        "spark.driver.memory": settings.heap,
        "spark.driver.extraJavaOptions": " ".join((settings.java_options, *options)),
        "spark.driver.extraClassPath": os.pathsep.join(str(each) for each in jars),
        "spark.local.dir": str(scratch),
        **({"spark.master": settings.master} if settings.master else {}),
        # A local Spark has them on its class path; for others they are copied.
        **(_elsewhere(settings, jars) if settings.master else {}),
        **_SPARK,
        **({} if settings.trigger == "realtime" else _IN_BATCHES),
        **settings.conf,
    }


def _elsewhere(settings: Spark, jars: Sequence[Path]) -> dict[str, str]:
    """What other machines need, and what they are told of Java."""
    return {
        "spark.jars": ",".join(map(str, filter(Path.is_file, jars))),
        "spark.executor.memory": settings.heap,
        "spark.executor.extraJavaOptions": settings.java_options,
        # Of others a worker of ours says so itself.
        **({_OWN_PLACES: "1"} if settings.master.startswith(("k8s://", "yarn")) else {}),
        **_ELSEWHERE,
        **(_packed(settings.archive) if settings.archive else {}),
    }


def _packed(archive: str) -> dict[str, str]:
    """What has executors fetch and unpack a packed environment, each in its own folder."""
    # It says by itself that places are the executor's (command/packing/python.sh).
    return {
        "spark.archives": f"{Path(archive).absolute()}#{UNPACKED}",
        "spark.pyspark.python": f"./{UNPACKED}/bin/python",
    }


def authentication(settings: Spark) -> dict[str, str]:
    """What lets a master, a worker and a driver trust each other. It holds a secret, so it is in
    no command."""
    if not settings.secret:
        return {}
    return {
        "spark.authenticate": "true",
        "spark.authenticate.secret": settings.secret,
        "spark.network.crypto.enabled": "true",
    }


def configuration(
    settings: Spark,
    jars: Sequence[Path],
    partitions: int,
    scratch: Path,
    java_options: Sequence[str] = (),
) -> dict[str, str]:
    """All of it: a local Spark has room for every partition's task, those of partitions that are
    added, and a spare slot.
    """
    local = {"spark.master": f"local[{partitions + 1 + ADDED},4]"}
    known = of_java(settings, jars, scratch, java_options)
    return {**local, **authentication(settings), **known}
