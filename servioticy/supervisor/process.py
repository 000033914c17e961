"""One running child: started so that it cannot outlive us, ended with all its children."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from servioticy.embedded.folder import DataFolder
from servioticy.supervisor import guard
from servioticy.supervisor.program import Program
from servioticy.supervisor.rotation import rotate

PR_SET_PDEATHSIG = 1
TAIL_BYTES = 16_384
TAIL_LINES = 20


class Guard:
    """Our end of the process that ends our programs if we are killed."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._groups: dict[int, signal.Signals] = {}
        self._start()

    def watch(self, group: int, number: signal.Signals) -> None:
        """End this process group if we are killed."""
        self._groups[group] = number
        self._tell(f"+{group} {number.value}")

    def forget(self, group: int) -> None:
        """The group is gone."""
        self._groups.pop(group, None)
        self._tell(f"-{group}")

    def revive(self) -> None:
        """Start it again if somebody killed it."""
        if self._process.poll() is not None:
            self._start()

    def close(self) -> None:
        """Let it go; groups still watched are ended."""
        with contextlib.suppress(OSError):
            self._pipe.close()
        self._process.wait()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=[self._folder.lock],
        )
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        self._pipe: IO[bytes] = self._process.stdin
        for group, number in self._groups.items():
            self._tell(f"+{group} {number.value}")

    def _tell(self, line: str) -> None:
        # A guard that is gone is told everything anew when it is revived.
        with contextlib.suppress(OSError):
            self._pipe.write(f"{line}\n".encode())
            self._pipe.flush()


class Child:
    """A program that was started; leader of its own process group."""

    def __init__(self, program: Program, log: Path, watcher: Guard) -> None:
        self.program = program
        self.started_at = time.monotonic()
        self.since = time.time()
        self.is_ready = False
        self._log = log
        self._log_start = log.stat().st_size if log.exists() else 0
        self._guard = watcher
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                program.command,
                env={**os.environ, **program.environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=program.descriptors,
                # Safe here: the supervisor has no other thread that could hold a lock.
                preexec_fn=_die_with_parent(program.stop_signal),
            )
        self.pid = self._process.pid
        watcher.watch(self.pid, program.stop_signal)

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self.started_at

    def exit_status(self) -> str | None:
        """Return how it ended, in words; None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        names = {number.value: number.name for number in signal.Signals}
        return f"signal {names.get(-code, -code)}" if code < 0 else f"exit code {code}"

    def rotate_log(self) -> None:
        """Put what it has written aside, where that has become much."""
        if rotate(self._log):
            self._log_start = 0

    def signal(self) -> None:
        """Ask the program to stop."""
        if self._process.poll() is None:
            self._process.send_signal(self.program.stop_signal)

    def kill_group(self) -> None:
        """End the program and its children, at once; harmless if they are gone."""
        guard.send(self.pid, signal.SIGKILL)
        self._process.wait()
        self._guard.forget(self.pid)

    def last_lines(self) -> str:
        """Return the end of what it wrote since it was started."""
        with self._log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            start = self._log_start if self._log_start <= size else 0
            log.seek(max(start, size - TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:]) or "(it wrote nothing)"


def _die_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    """Have the kernel stop the child when the thread that started it ends; Linux only.

    The guard does the same more thoroughly; this covers the moment before it knows.
    """
    if not sys.platform.startswith("linux"):
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def in_child() -> None:
        prctl(PR_SET_PDEATHSIG, number.value, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return in_child
