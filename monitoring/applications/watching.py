"""`python -m monitoring.applications.watching NAME TURN`: the monitor of one application.

It begins the application by its engine's driver, stores what is measured, writes down how it is,
and ends as the application does: who runs the monitor begins both again. The application is of its
process group, so whoever is killed, both go.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import FrameType

import msgspec

from monitoring.applications import handler, package, repository, states
from monitoring.applications.drivers import engines
from monitoring.applications.drivers.driver import Deployment
from monitoring.applications.inside import CUSTOMIZE, FOLDER, LOADED, NAME
from monitoring.applications.repository import Place, Registered
from monitoring.applications.states import Step, Written
from monitoring.publishers.every import Every, Surroundings
from monitoring.publishers.sums import Sums
from monitoring.state import FOLDER as STATES
from monitoring.state import birth
from servioticy import logs, settings
from servioticy.errors import ServioticyError
from servioticy.settings import Settings

log = logging.getLogger("servioticy.monitoring")

TICK_SECONDS = 0.1
TELL_SECONDS = 1.0
STOP_SECONDS = 8.0
"""Less than whoever runs this process waits for it."""
OURS = ("SERVIOTICY_", "PYTHON")
"""Variables that an application is not given: it has no business with the platform's stores."""


class Monitor:
    """One turn of one application."""

    def __init__(self, chosen: Settings, found: Registered) -> None:
        self._settings, self._found = chosen, found
        self._place = Place(chosen.data_path, found.name)
        last = states.written(self._place)
        starts = last.starts if last and last.turn == found.turn else 0
        pid = os.getpid()
        self._written = Written(
            *(found.turn, "starting", pid, birth(pid), 0, _now(), starts + 1, "", 0, 0)
        )
        self._stops = False

    def stop(self) -> None:
        """Have the application end, and `run` return."""
        self._stops = True

    def run(self) -> int:
        """Return the exit code: 0 where it has ended well, or was stopped."""
        self._tell("starting")
        for left in (self._place.scratch, self._place.folder / STATES):  # of one that was killed
            shutil.rmtree(left, ignore_errors=True)
        try:
            application = package.read(self._place.package)
            driver = engines.driver(self._settings.data_path, application.engine)
            start = driver.start(Deployment(application, self._place, self._settings))
            text = package.aspects_text(application.aspect, self._place.pipe)
            self._place.aspects.write_text(text, encoding="utf-8")
            self._place.loaded.mkdir(mode=0o700, exist_ok=True)
            (self._place.loaded / f"{CUSTOMIZE}.py").write_text(LOADED, encoding="utf-8")
            here = Surroundings(
                self._place.measurements,
                Sums(),
                self._settings,
                f"pipeline-{self._found.name}",
                self._place.package,
            )
            topic = f"{application.publish.kafka_topic}-{self._found.id}"
            chosen = msgspec.structs.replace(application.publish, kafka_topic=topic)
            self._place.pipe.unlink(missing_ok=True)  # what a former turn left is not of this
            stored = handler.Handler(self._place.pipe, Every(chosen, here))
        except (ServioticyError, OSError) as error:
            return self._failed(str(error))
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(OURS)},
            "PYTHONUNBUFFERED": "1",
            FOLDER: str(self._place.folder),
            NAME: self._found.name,
            **start.environment,
            **application.environment,
        }
        try:
            process = subprocess.Popen(
                start.command,
                cwd=self._place.package,
                env=environment,
                stdin=subprocess.DEVNULL,
            )
        except OSError as error:
            stored.close()
            return self._failed(f"it cannot be begun: {error}")
        log.info("application_begun", extra={"application": self._found.name, "pid": process.pid})
        self._written = msgspec.structs.replace(self._written, process=process.pid)
        self._tell("running")
        try:
            return self._watched(process, stored)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    def _watched(self, process: subprocess.Popen[bytes], stored: handler.Handler) -> int:
        told = time.monotonic()
        while not self._stops:
            with suppress(subprocess.TimeoutExpired):
                process.wait(TICK_SECONDS)
                break
            if time.monotonic() - told >= TELL_SECONDS:
                told = time.monotonic()
                self._count(stored)
        if self._stops and process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        stored.close()
        self._count(stored)
        if self._stops:
            self._tell("stopped")
            return 0
        code = process.returncode
        if code:
            return self._failed(f"signal {_named(-code)}" if code < 0 else f"exit code {code}")
        self._tell("ended", "exit code 0")
        return 0

    def _count(self, stored: handler.Handler) -> None:
        counted = msgspec.structs.replace(self._written, stored=stored.stored, lost=stored.lost)
        if counted != self._written:
            self._written = counted
            self._write()

    def _failed(self, why: str) -> int:
        log.warning("application_failed", extra={"application": self._found.name, "why": why})
        self._tell("failed", why)
        return 1

    def _tell(self, step: Step, why: str = "") -> None:
        process = self._written.process if step == "running" else 0
        self._written = msgspec.structs.replace(
            self._written, step=step, why=why, since=_now(), process=process
        )
        self._write()

    def _write(self) -> None:
        with suppress(FileNotFoundError):  # it is removed meanwhile
            states.write(self._place, self._written)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _named(number: int) -> str:
    return next((each.name for each in signal.Signals if each.value == number), str(number))


def main() -> int:
    """Watch it; an expected failure is one line and exit code 1."""
    name, turn = sys.argv[1:]
    try:
        chosen = settings.load()
        logs.configure(chosen.log_level)
        found = repository.registered(chosen.data_path, name)
    except (ServioticyError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    if found.turn != int(turn) or found.wish != "running":
        return 0  # somebody has changed his mind
    monitor = Monitor(chosen, found)

    def stop(_number: int, _frame: FrameType | None) -> None:
        monitor.stop()

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    return monitor.run()


if __name__ == "__main__":
    sys.exit(main())
