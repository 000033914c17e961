"""From what is stored to what is live: nothing lost between the two, nothing twice.

Whoever asks for the updates after a timestamp is subscribed first. What arrives while the
history is read is held back; then the two are merged by timestamp. The pipeline emits an
update only after it is stored, so what is held may have been read from the history already,
and what has been read may still arrive; both are told by timestamp and content. (A second
update with the same timestamp is another one if its content is another.)
"""

from __future__ import annotations

from collections.abc import Iterable

from delivery.repeats import Repeats
from servioticy.domain.model import LastUpdate

MAX_HELD_BYTES = 4 * 1024 * 1024
UPDATE_BYTES = 200
"""An update takes these beside its document: the objects around it, the entry in a list."""
IDENTITY_BYTES = 200
"""It takes so much to remember one update."""


class Overflow(Exception):
    """More arrives than a reader of the history may have held back."""


class Handover:
    """Knows what one client still has to get, and what it got from the history."""

    def __init__(self, max_held_bytes: int = MAX_HELD_BYTES) -> None:
        self._held: list[LastUpdate] = []
        self._max_held_bytes = max_held_bytes
        self._sent: Repeats[int] = Repeats(IDENTITY_BYTES)
        self.held_bytes = 0

    @property
    def remembered_bytes(self) -> int:
        """Return how many bytes it takes to remember what the history gave."""
        return self._sent.bytes

    def hold(self, update: LastUpdate) -> None:
        """Keep a live update until the history is through. Raises Overflow."""
        if self.is_repeat(update):
            return
        if self.held_bytes + size(update) > self._max_held_bytes:
            raise Overflow
        self.held_bytes += size(update)
        self._held.append(update)

    def note_read(self, stored: Iterable[LastUpdate]) -> None:
        """Note what the history gave: it is sent from there, and not once more."""
        self._sent.note(map(_identity, stored))

    def release(self) -> list[LastUpdate]:
        """Return what was held back and is not sent yet, by timestamp; empty: live from now on."""
        held, self._held, self.held_bytes = self._held, [], 0
        fresh = [update for update in held if not self.is_repeat(update)]
        return sorted(fresh, key=lambda update: update.timestamp)

    def is_repeat(self, update: LastUpdate) -> bool:
        """Return whether the history gave this very update already."""
        return self._sent.has(_identity(update))

    def forget(self) -> None:
        """Forget what the history gave. What is stored and not yet emitted may come twice."""
        self._sent.clear()


def size(update: LastUpdate) -> int:
    """Return how many bytes an update takes in memory."""
    return len(update.document) + UPDATE_BYTES


def _identity(update: LastUpdate) -> int:
    return hash((update.timestamp, update.document))
