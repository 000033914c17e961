"""What `servioticy up` does and says, from the first part to Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from command import listening
from command.platform import Platform
from servioticy.embedded.folder import read_run
from servioticy.metrics import Registry
from servioticy.serving_metrics import serve
from servioticy.settings import Settings, to_environment
from servioticy.supervisor.metrics import ProgramMetrics
from servioticy.supervisor.program import Event

DEMONSTRATION_SECONDS_TO_END = 3.0
ENDS_WITH_STDIN = "--ends-with-stdin"


def run(settings: Settings, demonstration: Sequence[str] | None, exit_after: bool) -> int:
    """Run the platform until Ctrl-C; with a demonstration (its arguments) inside.

    `exit_after`: stop when the demonstration ends, with its exit code.
    Raises ServioticyError where something cannot be started.
    """
    lacking = listening.taken(settings) if read_run(settings.data_path) is None else []
    began = time.monotonic()
    registry = Registry()
    programs = ProgramMetrics(registry)

    def report(event: Event) -> None:
        programs.note(event)
        _report(event)

    platform = Platform(settings, report)
    serve(registry, platform.settings, "up")
    where = listening.shown(platform.settings, lacking)
    beside = _Beside(platform.settings, where, demonstration, exit_after, began)
    try:
        platform.supervisor.run_forever(beside.is_done)
    finally:
        beside.stop()
        platform.close()
        _say("servioticy stopped")
    return beside.exit_code


class _Beside:
    """What happens beside the programs, once they are all ready."""

    def __init__(
        self,
        settings: Settings,
        where: Sequence[str],
        demonstration: Sequence[str] | None,
        exit_after: bool,
        began: float,
    ) -> None:
        self._settings = settings
        self._where = where
        self._arguments = demonstration
        self._exit_after = exit_after
        self._began = began
        self._told = False
        self._process: subprocess.Popen[bytes] | None = None
        self.exit_code = 0

    def is_done(self) -> bool:
        """Tell whether the platform may stop now; the first time asked, all programs are ready."""
        if not self._told:
            self._told = True
            _say(f"servioticy ready ({time.monotonic() - self._began:.1f} s)")
            _say("\n".join([*self._where, f"  data     {_short(self._settings.data_path)}"]))
            if self._arguments is not None:
                self._start(self._arguments)
            else:
                _say("Ctrl-C stops it. A tenant and its token: servioticy tenant create NAME")
        if self._process is None or self._process.poll() is None:
            return False
        self.exit_code = self._process.returncode if self._exit_after else 0
        self._process = None
        return self._exit_after

    def stop(self) -> None:
        """End the demonstration if it is still going."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(DEMONSTRATION_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _start(self, arguments: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-m",
                "demonstration",
                *arguments,
                ENDS_WITH_STDIN,
            ],
            env={**os.environ, **to_environment(self._settings)},
            # Ctrl-C is for the supervisor; it ends this one. A pipe nobody writes to tells
            # the child when we are gone, however we went.
            stdin=subprocess.PIPE,
            start_new_session=True,
        )


def _report(event: Event) -> None:
    """Progress for whoever waits; trouble for whoever looks later."""
    if event.kind in ("ready", "exited", "unresponsive"):
        detail = f" {event.detail.splitlines()[0]}" if event.detail else ""
        sys.stderr.write(f"  {event.program}: {event.kind}{detail}\n")
        sys.stderr.flush()


def _short(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
