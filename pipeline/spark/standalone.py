"""Spark's own cluster manager, run from the package that is installed: a master, and workers.

PySpark has the classes and not the scripts for them. Whoever reaches a master may have its workers
run anything, so each is told a secret, in a file that only we read; and their pages listen where
they do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pipeline.spark.configuration import authentication
from pipeline.spark.here import OWN_PLACES
from servioticy.embedded import java
from servioticy.errors import SettingsError
from servioticy.settings import Settings, to_environment
from servioticy.settings.places import is_loopback

MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"
HEAP = "256m"
"""Of a master or worker; its executors have their own."""
BACK_SECONDS = 20
"""A worker that is silent for so long is given up by the master."""


class Place(NamedTuple):
    """Where a master or worker listens, and where it may write."""

    host: str
    port: int
    folder: Path
    page_port: int = 0
    """Of its page; 0: any that is free."""


def master(settings: Settings, place: Place) -> tuple[list[str], dict[str, str]]:
    """Return the command of a master and its environment. Raises SettingsError, SetupError."""
    return _command(settings, place, MASTER, ())


def worker(
    settings: Settings, place: Place, of: str, cores: int, memory: str
) -> tuple[list[str], dict[str, str]]:
    """Return the same of a worker of a master (`spark://host:port`), with so many slots.

    `memory` is for all of its executors together, as Java has it (`2g`). Raises SettingsError,
    SetupError.
    """
    if not of.startswith("spark://"):
        raise SettingsError(f"{of} is no master: it has to be spark://HOST:PORT")
    options = ("--cores", str(cores), "--memory", memory, "--work-dir", str(place.folder), of)
    command, environment = _command(settings, place, WORKER, options)
    # Executors have it, and Spark's Python on this machine.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    return command, {**environment, **to_environment(settings), OWN_PLACES: "1", "PATH": path}


def _command(
    settings: Settings, place: Place, what: str, options: Sequence[str]
) -> tuple[list[str], dict[str, str]]:
    if not settings.spark.secret and not is_loopback(place.host):
        raise SettingsError(
            "set spark_secret: without it whoever reaches this machine may run anything on it"
        )
    runtime = java.find(settings)
    home = java.pyspark_jars().parent
    properties = _written(place.folder, {**authentication(settings.spark), **_daemon()})
    command = [
        str(runtime.executable),
        "-cp",
        str(home / "jars" / "*"),
        f"-Xmx{HEAP}",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        what,
        *("--host", place.host, "--port", str(place.port)),
        *("--webui-port", str(place.page_port), "--properties-file", str(properties)),
        *options,
    ]
    return command, {
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": "2.13",
        "JAVA_HOME": str(runtime.home),
        "SPARK_LOCAL_IP": place.host,
        "SPARK_LOCAL_DIRS": str(place.folder / "local"),
        "SPARK_NO_DAEMONIZE": "1",
    }


def _daemon() -> Mapping[str, str]:
    return {
        "spark.ui.killEnabled": "false",
        # It takes programs of whoever asks, by HTTP and without our secret.
        "spark.master.rest.enabled": "false",
        "spark.worker.timeout": str(BACK_SECONDS),
        "spark.deploy.maxExecutorRetries": "-1",
        # An application that has ended leaves its folders, and its logs, for a while.
        "spark.worker.cleanup.enabled": "true",
        "spark.worker.cleanup.appDataTtl": "86400",
    }


def _written(folder: Path, properties: Mapping[str, str]) -> Path:
    """Write them where only we read them."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "spark.properties"
    target.unlink(missing_ok=True)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.writelines(f"{key} {value}\n" for key, value in properties.items())
    return target
