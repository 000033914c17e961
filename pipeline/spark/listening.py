"""Waits for what programs answer, so that nobody who computes has to look for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from servioticy.ports.programs import Program, Programs, Question, Reply

WAIT_SECONDS = 1.0
"""So long it may take until it has ended."""


class Listener:
    """Programs whose replies are waited for in a thread, which begins with the first question.

    What has come is fetched before it waits again: no more than that is held here.
    """

    def __init__(self, programs: Programs, wake: Callable[[], None]) -> None:
        """`wake` is called once there is something to fetch, in that thread."""
        self._programs = programs
        self._wake = wake
        self._changed = threading.Condition()
        self._replies: Sequence[Reply] = ()
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def ask(self, question: Question) -> bool:
        """Take a question, as the port has it."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._listen, name="answers", daemon=True)
            self._thread.start()
        return self._programs.ask(question)

    def replies(self, _wait_seconds: float) -> Sequence[Reply]:
        """Return what has come; it waits for nothing."""
        with self._changed:
            found, self._replies = self._replies, ()
            self._changed.notify_all()
        return found

    def forget(self, program: Program) -> None:
        """End a program, as the port has it."""
        self._programs.forget(program)

    def close(self) -> None:
        """End all of them, and listen no more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._programs.close()
        if self._thread is not None:
            self._thread.join()

    def _listen(self) -> None:
        while not self._is_closed:
            found = self._programs.replies(WAIT_SECONDS)
            if not found:
                continue
            with self._changed:
                self._changed.wait_for(lambda: not self._replies or self._is_closed)
                self._replies = found
            self._wake()
