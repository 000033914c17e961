"""A Spark of several workers, each at an address of its own, as `servioticy spark` starts them."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks import processes
from servioticy.embedded import tcp_ports as ports
from servioticy.settings import Settings, changed, to_environment

SECONDS = 300.0
"""For what never happens: a start takes three."""
PAUSE_SECONDS = 0.05
REGISTERED = "Successfully registered with master"


class Machine:
    """A program and all below it: what a machine would be that dies."""

    def __init__(
        self,
        words: list[str],
        environment: Mapping[str, str],
        log: Path,
        folder: Path | None = None,
    ) -> None:
        """`words` are its command; it works in a folder, else in ours."""
        self._log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                words,
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def said(self) -> str:
        """Its log."""
        return self._log.read_text("utf-8", "replace")

    def wait_for(self, words: str) -> None:
        """Wait until it has said this. Raises RuntimeError where it ends before, or never does."""
        deadline = time.monotonic() + SECONDS
        while words not in (said := self.said()):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"it has not said {words!r}: {said[-2000:]}")
            time.sleep(PAUSE_SECONDS)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def below(self, words: str) -> list[int]:
        """Its processes whose command has these words."""
        return below(self._process.pid, words)

    def kill(self) -> None:
        """End all of it at once."""
        for each in reversed(processes.tree(self._process.pid)):
            send(each, signal.SIGKILL)
        self._process.wait()


def ours(words: list[str], settings: Settings, log: Path) -> Machine:
    """Return one that runs a command of `servioticy`."""
    command = [sys.executable, "-P", "-m", "command.cli", *words, "--data", str(log.parent)]
    return Machine(command, {**os.environ, **to_environment(settings)}, log)


class SparkMachines:
    """A master and workers of one slot each. Their folders are below one that is given."""

    def __init__(self, settings: Settings, folder: Path, workers: int) -> None:
        self._folder = folder
        self._port = ports.free()
        self.settings = changed(
            settings,
            spark_master=f"spark://127.0.0.1:{self._port}",
            spark_secret=secrets.token_hex(16),
        )
        self.master = self._start_master()
        self.workers = [self._start_worker(number) for number in range(workers)]
        for each in self.workers:
            each.wait_for(REGISTERED)

    def again(self, number: int) -> None:
        """Start a worker again that was killed."""
        self.workers[number] = self._start_worker(number)

    def master_again(self) -> None:
        """Start the master again at its address."""
        self.master = self._start_master()

    def signal(self, words: str, number: signal.Signals) -> bool:
        """Send a signal to all processes of workers whose command has these words."""
        found = [pid for each in self.workers for pid in each.below(words)]
        for each in found:
            send(each, number)
        return bool(found)

    def kill(self) -> None:
        """End all of it."""
        for each in (*self.workers, self.master):
            each.kill()

    def _start_master(self) -> Machine:
        words = ["spark", "master", "--port", str(self._port)]
        machine = ours(words, self.settings, self._log("master"))
        machine.wait_for("I have been elected leader")
        return machine

    def _start_worker(self, number: int) -> Machine:
        place = ("--host", f"127.0.0.{number + 2}", "--cores", "1", "--memory", "1g")
        words = ["spark", "worker", *place, self.settings.spark.master]
        # It knows of the platform only what it is told by the pipeline.
        own = changed(Settings(), spark_secret=self.settings.spark.secret)
        return ours(words, own, self._log(f"worker-{number}"))

    def _log(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        return folder / "log"


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal, where there still is such a process."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def below(pid: int, words: str) -> list[int]:
    """Return those of a process and all below it whose command has these words."""
    tree = processes.tree(pid)
    return [each for each in tree if words in " ".join(processes.command(each))]
