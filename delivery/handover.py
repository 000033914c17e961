"""From what is stored to what is live: nothing lost between the two, nothing twice.

Whoever asks for the updates after a timestamp is subscribed first. What arrives while the
history is read is held back; then the two are merged by timestamp. The pipeline emits an
update only after it is stored, so what is held may have been read from the history already,
and what has been read may still arrive; both are told by timestamp and content. (A second
update with the same timestamp is another one if its content is another.)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from servioticy.model import LastUpdate, Timestamp

MAX_HELD_BYTES = 4 * 1024 * 1024
MAX_REMEMBERED = 20_000


class Overflow(Exception):
    """More arrives than a reader of the history may have held back."""


class Handover:
    """What one watcher still has to get, and what it got from the history.

    Only the newest `MAX_REMEMBERED` stored updates are remembered: an update read from
    the history and not yet emitted is among the last ones stored.
    """

    def __init__(self, max_held_bytes: int = MAX_HELD_BYTES) -> None:
        self._held: list[LastUpdate] = []
        self._held_bytes = 0
        self._max_held_bytes = max_held_bytes
        self._sent: OrderedDict[tuple[Timestamp, int], None] = OrderedDict()

    def hold(self, update: LastUpdate) -> None:
        """Keep a live update until the history is through. Raises Overflow."""
        if self.is_repeat(update):
            return
        self._held_bytes += len(update.document)
        if self._held_bytes > self._max_held_bytes:
            raise Overflow
        self._held.append(update)

    def read(self, stored: Iterable[LastUpdate]) -> None:
        """Note what the history gave: it is sent from there and not once more."""
        for update in stored:
            self._sent[_identity(update)] = None
        while len(self._sent) > MAX_REMEMBERED:
            self._sent.popitem(last=False)

    def take(self) -> list[LastUpdate]:
        """What was held back and is not sent yet, by timestamp; empty: live from now on."""
        held, self._held, self._held_bytes = self._held, [], 0
        fresh = [update for update in held if not self.is_repeat(update)]
        return sorted(fresh, key=lambda update: update.timestamp)

    def is_repeat(self, update: LastUpdate) -> bool:
        """Whether the history gave this very update already."""
        return _identity(update) in self._sent


def _identity(update: LastUpdate) -> tuple[Timestamp, int]:
    return update.timestamp, hash(update.document)
