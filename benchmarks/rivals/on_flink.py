"""An operator in Python on Flink, stopped with a savepoint and begun again as another version.

Run by its own interpreter, with the work as JSON. As Flink's documentation has it: a job is
changed by stopping it with a savepoint and beginning another one from that. Source, operator and
what notes when an update came are in one process of Python, nothing is sent anywhere.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WARM_SECONDS = 10.0
BUNDLE_MS = "10"
MANY = 10_000_000


def main() -> None:
    """Print of each change when it was asked for, and of each update when it came."""
    work = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        came = Path(folder) / "came"
        asked: list[float] = []
        began = time.perf_counter() + WARM_SECONDS
        saved = None
        for version in range(1, work["changes"] + 2):
            job = _begin(work["rate"], began, version, came, saved)
            _until_it_comes(came, version)
            if version == 1:
                time.sleep(max(0.0, began - time.perf_counter()))
            time.sleep(work["between"])
            if version > work["changes"]:
                break
            asked.append(time.perf_counter())
            saved = _stopped(job, folder)
        job.cancel().result()
        lines = [line.split() for line in came.read_text().splitlines()]
    updates = [(int(number), int(by), float(at)) for number, by, at in lines]
    print(json.dumps({"asked": asked, "updates": updates}))


def _begin(rate: float, began: float, version: int, came: Path, saved: str | None) -> Any:
    common = importlib.import_module("pyflink.common")
    datastream = importlib.import_module("pyflink.datastream")
    sources = importlib.import_module("pyflink.datastream.connectors.number_seq")
    settings = common.Configuration()
    settings.set_string("python.executable", sys.executable)
    settings.set_string("python.client.executable", sys.executable)
    settings.set_string("python.fn-execution.bundle.time", BUNDLE_MS)
    if saved is not None:
        settings.set_string("execution.state-recovery.path", saved)
    found = datastream.StreamExecutionEnvironment.get_execution_environment(settings)
    found.set_parallelism(1)
    numbers = found.from_source(
        sources.NumberSequenceSource(0, MANY),
        common.WatermarkStrategy.no_watermarks(),
        "numbers",
    )
    note = os.fspath(came)

    class Forward(datastream.MapFunction):  # type: ignore[name-defined, misc]
        """Pass a number on once it is due, and add the version."""

        def open(self, _context: Any) -> None:
            self.file = os.open(note, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

        def map(self, number: int) -> tuple[int, int]:
            left = began + number / rate - time.perf_counter()
            if left > 0:
                time.sleep(left)
            os.write(self.file, b"%d %d %.6f\n" % (number, version, time.perf_counter()))
            return number, version

    numbers.map(Forward()).uid("forward")
    return found.execute_async(f"version {version}")


def _stopped(job: Any, folder: str) -> str:
    """Stop it, and return where its savepoint is: what 2.1 has in Python for that is of 1.x."""
    jvm = importlib.import_module("pyflink.java_gateway").get_gateway().jvm
    canonical = jvm.org.apache.flink.core.execution.SavepointFormatType.CANONICAL
    return str(job._j_job_client.stopWithSavepoint(False, folder, canonical).get())


def _until_it_comes(came: Path, version: int) -> None:
    until = time.perf_counter() + 120
    wanted = b" %d " % version
    while not (came.exists() and wanted in came.read_bytes()[-4096:]):
        if time.perf_counter() > until:
            raise TimeoutError(version)
        time.sleep(0.01)


if __name__ == "__main__":
    main()
