"""What a line of the log says of an error: its place, and a traceback where that helps.

Whoever can make one of our mistakes happen can make it happen often. The first of a kind is told
with all that leads to it; for a minute those like it are told by type, message and place, and so
is for good what is expected of the world: a server that is away, a connection that ends.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from servioticy.errors import ServioticyError

EXPECTED = (ServioticyError, OSError, EOFError)
"""TimeoutError and what connections raise are OSErrors."""
SECONDS = 60.0
"""Between two tracebacks of a kind."""
MAX_KINDS = 200
"""Beyond it the one told longest ago is forgotten."""
MAX_ERROR = 500
MAX_TRACEBACK = 8_000


class Tracebacks:
    """Remembers which kinds were told with a traceback: event, type and place of an error."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begin()
        # A thread of ours may hold the lock where a process is forked.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._told: dict[tuple[str, str, str], float] = {}

    def facts(self, event: str, error: BaseException) -> dict[str, str]:
        """Return `error`, `place`, and `traceback` where this is the first of its kind."""
        name, place = type(error).__qualname__, _place(error)
        facts = {"error": _short(f"{name}: {error}", MAX_ERROR), "place": place}
        if not isinstance(error, EXPECTED) and self._is_first((event, name, place)):
            text = "".join(traceback.format_exception(error))
            facts["traceback"] = _short(text, MAX_TRACEBACK)
        return facts

    def _is_first(self, kind: tuple[str, str, str]) -> bool:
        now = self._clock()
        with self._lock:
            told = self._told.get(kind)
            if told is not None and now - told < SECONDS:
                return False
            self._told.pop(kind, None)  # in the order in which they were told
            self._told[kind] = now
            if len(self._told) > MAX_KINDS:
                del self._told[next(iter(self._told))]
            return True


def _place(error: BaseException) -> str:
    """Return file and line where it was raised; none where it never was."""
    last = error.__traceback__
    if last is None:
        return ""
    while last.tb_next is not None:
        last = last.tb_next
    parts = Path(last.tb_frame.f_code.co_filename).parts
    return f"{'/'.join(parts[-3:])}:{last.tb_lineno}"


def _short(text: str, most: int) -> str:
    """Return both ends of a long text: where it began, and what it came to."""
    text = text.encode(errors="replace").decode()
    if len(text) <= most:
        return text
    return f"{text[: most // 2 - 5]}\n...\n{text[-most // 2 :]}"
