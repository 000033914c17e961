"""Threads of which one runs at a time, as a test says, and a clock that it holds."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Turns:
    """Time as those who take turns have it, in seconds; it passes when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self._before = float("inf")

    def clock(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        """Let so much time pass; nothing where somebody would not take that long."""
        if self.now + seconds < self._before:
            self.now += seconds


class Actor:
    """Does something, in its turns only."""

    def __init__(self, turns: Turns, work: Callable[[], None]) -> None:
        self.is_done = False
        self._turns, self._work = turns, work
        self._error: BaseException | None = None
        self._go, self._paused = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self._run, daemon=True).start()

    def step(self) -> None:
        """Let it go on until it pauses; raises what it raised."""
        if not self.is_done:
            self._go.release()
            self._paused.acquire()
        if self._error is not None:
            raise self._error

    def pause(self) -> None:
        """Let others have their turns; called by what it does."""
        self._paused.release()
        self._go.acquire()

    def pause_for_less_than(self, seconds: float) -> None:
        """The same; its own next turn comes before so much time has passed."""
        self._turns._before = self._turns.now + seconds
        self.pause()
        self._turns._before = float("inf")

    def sleep(self, seconds: float) -> None:
        until = self._turns.now + seconds
        self.pause()
        while self._turns.now < until:
            self.pause()

    def _run(self) -> None:
        self._go.acquire()
        try:
            self._work()
        except BaseException as error:
            self._error = error
        self.is_done = True
        self._paused.release()
