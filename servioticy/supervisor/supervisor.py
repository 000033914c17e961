"""Keeps the platform's programs running: starts them in order, restarts, stops in reverse.

One thread does it all: what the kernel promises about children that must not outlive us
holds for the thread that started them. So start it and run it from the main thread.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from servioticy.embedded.folder import DataFolder
from servioticy.errors import ServioticyError, Unavailable
from servioticy.supervisor.process import Child, Guard
from servioticy.supervisor.program import Event, EventKind, Program
from servioticy.supervisor.rotation import rotate

TICK_SECONDS = 0.05
FIRST_PAUSE_SECONDS = 0.25
MAX_PAUSE_SECONDS = 5.0
HEALTHY_SECONDS = 60.0
FIND_SECONDS = 1.0
"""Between two looks at which others are to run."""


def pause_before_restart(failures: int) -> float:
    """Return the seconds to wait after so many failures in a row: 0 at first, then ever more."""
    if failures <= 1:
        return 0.0
    return min(MAX_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * float(2 ** min(failures - 2, 10)))


class Supervisor:
    """The programs of one data folder; `extra` is added to what run.json tells.

    `others` is asked every second which programs are to run beside those: one that comes is
    started, one that goes, or has another command, is stopped. Nobody waits for them.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        folder: DataFolder,
        on_event: Callable[[Event], None] = lambda _: None,
        extra: Mapping[str, Any] | None = None,
        others: Callable[[], Sequence[Program]] = tuple,
    ) -> None:
        self._programs = list(programs)
        self._find_others = others
        self._others: list[Program] = []
        self._ending: dict[str, tuple[Child, float]] = {}
        self._find_at = 0.0
        self._folder = folder
        self._on_event = on_event
        self._extra = dict(extra or {})
        self._children: dict[str, Child] = {}
        self._failures: dict[str, int] = {}
        self._start_at: dict[str, float] = {}
        self._guard: Guard | None = None
        self._stops_asked = 0

    def start(self) -> None:
        """Start every program, each when the one before it is ready, or together with it.

        Raises Unavailable with the end of its log if one dies or takes too long; then all
        are stopped again.
        """
        self._guard = Guard(self._folder)
        try:
            for wave in _waves(self._programs):
                self._start_wave(wave)
        except BaseException:
            self.stop()
            raise

    def run_forever(self, done: Callable[[], bool] = lambda: False) -> None:
        """Start what is not started, keep it running until SIGINT, SIGTERM or SIGHUP, stop it.

        A second signal hurries: the programs are killed. `done` is asked again and again
        once all have been ready, and ends it too.
        """
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        previous = {number: signal.signal(number, self._ask_to_stop) for number in numbers}
        try:
            if self._guard is None:
                self.start()
            while not self._stops_asked and not done():
                self.tick()
                time.sleep(TICK_SECONDS)
        finally:
            self.stop()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def tick(self) -> None:
        """Look after every program once: notice ends, restart what is due, ask who is ready."""
        if self._guard is not None:
            self._guard.revive()
        self._look_for_others()
        for program in (*self._programs, *self._others):
            self._look_after(program)

    def stop(self) -> None:
        """Stop everything in reverse order and tidy up; harmless when stopped already."""
        for program in self._others:
            if (other := self._children.pop(program.name, None)) is not None:
                self._let_end(other)
        while self._ending:
            self._finish_ending(hurry=self._stops_asked > 1)
            time.sleep(0.01)
        for program in reversed(self._programs):
            child = self._children.get(program.name)
            if child is not None:
                self._end(child)
                del self._children[program.name]
        if self._guard is not None:
            self._guard.close()
            self._guard = None
        self._folder.run_file.unlink(missing_ok=True)

    def ask_to_stop(self) -> None:
        """Make `run_forever` return; asking twice hurries."""
        self._stops_asked += 1

    def pids(self) -> dict[str, int]:
        """Return the process of each program that runs."""
        return {name: child.pid for name, child in self._children.items()}

    def since(self) -> dict[str, float]:
        """Return when each program that runs was started, in seconds since 1970."""
        return {name: child.since for name, child in self._children.items()}

    def _look_for_others(self) -> None:
        """Let those run that are to, and no others."""
        self._finish_ending()
        now = time.monotonic()
        if now < self._find_at:
            return
        self._find_at = now + FIND_SECONDS
        try:
            found = {each.name: each for each in self._find_others()}
        except (OSError, ServioticyError):
            return  # they go on as they are
        for program in self._others:
            wanted = found.get(program.name)
            if wanted is not None and wanted.command == program.command:
                found[program.name] = program
                continue
            self._failures.pop(program.name, None)
            self._start_at.pop(program.name, None)
            if (child := self._children.pop(program.name, None)) is not None:
                self._let_end(child)
        before = {each.name for each in self._others}
        self._others = [each for name, each in found.items() if name not in self._ending]
        if before - {each.name for each in self._others}:
            self._write_run()

    def _let_end(self, child: Child) -> None:
        self._tell(child.program, "stopping")
        child.signal()
        self._ending[child.program.name] = child, time.monotonic() + child.program.stop_seconds

    def _finish_ending(self, *, hurry: bool = False) -> None:
        """Let go of others that have ended, or had the time to."""
        for name, (child, until) in [*self._ending.items()]:
            if hurry or child.exit_status() is not None or time.monotonic() > until:
                child.kill_group()
                del self._ending[name]
                self._tell(child.program, "stopped", child.exit_status() or "")

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.ask_to_stop()

    def _start_wave(self, wave: Sequence[Program]) -> None:
        """Start these at once and wait for all of them."""
        for program in wave:
            if self._stops_asked:
                return
            rotate(self._folder.logs / f"{program.name}.log")
            self._spawn(program)
        waiting = list(wave)
        while not self._stops_asked:
            waiting = [program for program in waiting if not self._became_ready(program)]
            if not waiting:
                return
            self._watch_others(wave[0])
            time.sleep(TICK_SECONDS)

    def _spawn(self, program: Program) -> None:
        assert self._guard is not None  # noqa: S101 - for the type checker
        program.before()
        log = self._folder.logs / f"{program.name}.log"
        try:
            child = Child(program, log, self._guard)
        except OSError as error:
            raise Unavailable(f"{program.name} cannot be started: {error}") from error
        self._children[program.name] = child
        self._write_run()
        self._tell(program, "starting")

    def _write_run(self) -> None:
        facts = {"pid": os.getpid(), "pids": self.pids(), "since": self.since()}
        self._folder.write_run({**self._extra, **facts})

    def _became_ready(self, program: Program) -> bool:
        child = self._children[program.name]
        ended = child.exit_status()
        if ended is None and _answers(program):
            child.is_ready = True
            self._tell(program, "ready", f"after {child.age:.1f} s")
            return True
        if ended is not None or child.age > program.ready_seconds:
            how = (
                f"ended ({ended})" if ended else f"is not ready after {program.ready_seconds:g} s"
            )
            raise Unavailable(
                f"{program.name} {how}; the end of {self._folder.logs / program.name}.log:\n"
                f"{child.last_lines()}"
            )
        return False

    def _watch_others(self, program: Program) -> None:
        for other in self._programs[: self._programs.index(program)]:
            self._look_after(other)

    def _look_after(self, program: Program) -> None:
        child = self._children.get(program.name)
        if child is not None:
            child.rotate_log()
        if child is None:
            if time.monotonic() >= self._start_at.get(program.name, 0.0):
                self._respawn(program)
        elif (ended := child.exit_status()) is not None:
            self._gave_up(child, "exited", ended)
        elif not child.is_ready:
            try:
                self._became_ready(program)
            except Unavailable as error:
                self._gave_up(child, "unresponsive", str(error))

    def _respawn(self, program: Program) -> None:
        try:
            self._spawn(program)
        except ServioticyError as error:
            self._count_failure(program, healthy=False)
            self._tell(program, "exited", str(error))

    def _gave_up(self, child: Child, kind: EventKind, detail: str) -> None:
        program = child.program
        child.kill_group()
        del self._children[program.name]
        self._find_at = 0.0  # one of the others may have ended for good
        self._count_failure(program, healthy=child.is_ready and child.age > HEALTHY_SECONDS)
        self._tell(program, kind, detail)

    def _count_failure(self, program: Program, *, healthy: bool) -> None:
        failures = 1 if healthy else self._failures.get(program.name, 0) + 1
        self._failures[program.name] = failures
        self._start_at[program.name] = time.monotonic() + pause_before_restart(failures)

    def _end(self, child: Child) -> None:
        self._tell(child.program, "stopping")
        child.signal()
        deadline = time.monotonic() + child.program.stop_seconds
        while child.exit_status() is None:
            if self._stops_asked > 1 or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        child.kill_group()
        self._tell(child.program, "stopped", child.exit_status() or "")

    def _tell(self, program: Program, kind: EventKind, detail: str = "") -> None:
        child = self._children.get(program.name)
        self._on_event(Event(program.name, kind, detail, child.pid if child else 0))


def _waves(programs: Sequence[Program]) -> list[list[Program]]:
    """Return the programs in order, those started together in one list."""
    waves: list[list[Program]] = [[]]
    for program in programs:
        waves[-1].append(program)
        if not program.together:
            waves.append([])
    return [wave for wave in waves if wave]


def _answers(program: Program) -> bool:
    # A refused connection, an HTTP error: all of them say "not yet".
    with contextlib.suppress(OSError):
        return program.ready()
    return False
