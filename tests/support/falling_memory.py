"""A Postgres in memory that forgets its last commits when it falls: those that nothing waited for.

What the API has committed is on the disk, and all that was committed before. What the broker has
is not forgotten.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import fields
from typing import Any

from memory.state import State

KEPT = {
    "log",
    "lock",
    "changes",
    "change_wait_seconds",
    "postgres_answers",
    "broker_answers",
    "emitted_to",
    "dead_letters",
    "claims",
}
"""What is not in Postgres, or not on its disk."""


class Memory:
    """What Postgres was since the last commit that is on the disk."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._saved: list[dict[str, Any]] = []

    def is_on_disk(self) -> None:
        """Nothing of what is committed now can be forgotten."""
        self._saved.clear()

    def save(self) -> None:
        """Somebody is about to commit what nobody waits for."""
        names = [each.name for each in fields(self._state) if each.name not in KEPT]
        self._saved.append(deepcopy({name: getattr(self._state, name) for name in names}))

    def fall(self, commits: int) -> None:
        """Forget so many of the last commits, as far as they may be forgotten."""
        if not self._saved or commits < 1:
            return
        del self._saved[len(self._saved) - min(commits, len(self._saved)) + 1 :]
        for name, value in self._saved.pop().items():
            setattr(self._state, name, value)
