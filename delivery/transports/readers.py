"""Whoever gets updates in a task of its own, and may be told to end."""

from __future__ import annotations

import asyncio

from delivery.endings import Ending


class Reader:
    """The task in which it is made, seen by those who may end it."""

    def __init__(self) -> None:
        self.ending: Ending | None = None
        self._task = asyncio.current_task()

    def end(self, ending: Ending) -> None:
        """Interrupt it, once; `why` then tells it the reason."""
        if self.ending is None and self._task is not None:
            self.ending = ending
            self._task.cancel()

    def why(self) -> Ending:
        """Return why it was interrupted. Raises CancelledError where nobody but the loop did."""
        if self.ending is None or self._task is None or self._task.uncancel():
            raise asyncio.CancelledError
        return self.ending
