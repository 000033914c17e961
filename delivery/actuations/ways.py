"""How a device is reached that is connected, and what becomes of an actuation on several ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import orjson

from servioticy.ports.actuations import Actuation

Taken = Callable[[bool], None]
"""Is told once whether somebody has got it; False: those that had it to get are gone."""


class Way(Protocol):
    """A way to a device. No method waits."""

    def is_there(self) -> bool:
        """Tell whether anybody is at its end."""

    def has_room(self) -> bool:
        """Tell whether it can take one more now."""

    def give(self, actuation: Actuation, taken: Taken) -> None:
        """Send it; `taken` is told what became of it, perhaps at once."""


def message(actuation: Actuation) -> bytes:
    """Return what a device gets: as the original wrote it, and our members in front of that."""
    return orjson.dumps(
        {
            "id": actuation.id,
            "createdAt": actuation.created_ms,
            "expiresAt": actuation.expires_ms,
            "description": orjson.Fragment(actuation.description),
            "parameters": actuation.parameters,
        }
    )


class Report:
    """Adds up what becomes of one actuation on several ways: one that takes it is enough."""

    def __init__(self, ways: int, tell: Taken) -> None:
        self._left = ways
        self._tell: Taken | None = tell

    def taken(self, is_taken: bool) -> None:
        """Note what one way says."""
        self._left -= 1
        if self._tell is not None and (is_taken or not self._left):
            tell, self._tell = self._tell, None
            tell(is_taken)
