"""Spark's Java, started by us and before PySpark is loaded, which would start it otherwise.

PySpark is told by its environment that there is one already (`pyspark/java_gateway.py`).
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from pipeline.spark.configuration import of_java
from servioticy.embedded import jars, java, shared_classes
from servioticy.embedded.java import NOTHING_ADDED, Added
from servioticy.errors import SetupError
from servioticy.settings import Settings

SECONDS_TO_ANSWER = 100.0
OPENED = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
OPTIONS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
    "-Dderby.connection.requireAuthentication=false",
)
"""What Spark uses of Java's insides, and what it tells libraries: as its launcher does."""
TICK_SECONDS = 0.01
SECONDS_TO_END = 20.0
"""Once it is let go; it may still be starting."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for what Spark writes down: all of it is of use to this run only."""
    folder = Path(tempfile.mkdtemp(prefix="servioticy-pipeline-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def class_path(own: Iterable[Path]) -> list[Path]:
    """Return ours and Spark's, without the library for machine learning.

    That one has Spark register functions by Scala's reflection, for a second at every start.
    """
    found = sorted(java.pyspark_jars().glob("*.jar"))
    found = [each for each in found if not each.name.startswith("spark-mllib_")]
    # As Spark's launcher has it: other jars have a part of that one.
    found.sort(key=lambda each: not each.name.startswith("slf4j-api-"))
    return [*own, *found]


def gateway(known: Mapping[str, str], executable: Path, added: Added = NOTHING_ADDED) -> list[str]:
    """Return the command of a Java with a local Spark, and nothing else that would take time.

    `spark-submit` runs a Java of its own to find this command, and then a part of Spark that finds
    out that there is nothing to submit.
    """
    own = map(Path, known["spark.driver.extraClassPath"].split(os.pathsep))
    return [
        str(executable),
        "-cp",
        os.pathsep.join(map(str, (*class_path(own), *added.classes))),
        f"-Xmx{known['spark.driver.memory']}",
        *shlex.split(known["spark.driver.extraJavaOptions"]),
        *added.options,
        *(f"--add-opens={each}=ALL-UNNAMED" for each in OPENED),
        *OPTIONS,
        "org.apache.spark.api.python.PythonGatewayServer",
    ]


def _submitted(known: Mapping[str, str]) -> list[str]:
    words = [word for key, value in known.items() for word in ("--conf", f"{key}={value}")]
    return [str(java.pyspark_jars().parent / "bin" / "spark-submit"), *words, "pyspark-shell"]


class Starting:
    """A Java that starts, and ends with its block or with us, however we end."""

    def __init__(
        self,
        settings: Settings,
        scratch: Path,
        options: Sequence[str] | None = None,
        seconds_to_end: float = SECONDS_TO_END,
        added: Added = NOTHING_ADDED,
    ) -> None:
        """Start it, with these options of Java's, or as its classes are kept.

        `added`: what it is begun with as well, where Spark is on this machine.

        Raises SetupError where that cannot be.
        """
        self._seconds_to_end = seconds_to_end
        self.classes = jars.spark_jars(settings)
        """The jars that it has beside Spark's own."""
        self._told = scratch / "gateway"
        runtime = java.find(settings)
        os.environ["JAVA_HOME"] = str(runtime.home)
        ready = shared_classes.options("spark", class_path(self.classes), runtime)
        ready = ready if options is None else tuple(options)
        known = of_java(settings.spark, self.classes, scratch, ready)
        is_here = known.get("spark.master", "local").startswith("local")
        self._process = subprocess.Popen(
            gateway(known, runtime.executable, added) if is_here else _submitted(known),
            # It ends when this pipe does. Ctrl-C is for us alone.
            stdin=subprocess.PIPE,
            env={
                **os.environ,
                "SPARK_CONNECT_MODE": "0",
                "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._told),
            },
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let it end, before the folder goes that it writes to: else it would stay for ever."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(self._seconds_to_end)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @contextmanager
    def known(self) -> Iterator[None]:
        """Wait until it answers; PySpark, if it is asked for a Java inside, takes this one.

        Raises SetupError where it has ended, or does not answer.
        """
        port, secret = self._answer()
        mine = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
        os.environ.update(mine)
        try:
            yield
        finally:
            for each in mine:
                del os.environ[each]

    def _answer(self) -> tuple[int, str]:
        """Return its port and what has to be said there."""
        deadline = time.monotonic() + SECONDS_TO_ANSWER
        while not self._told.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SetupError("Spark's Java does not start; what it wrote is above")
            time.sleep(TICK_SECONDS)
        told = self._told.read_bytes()
        (port, size) = struct.unpack_from("!ii", told)
        return port, told[8 : 8 + size].decode()
