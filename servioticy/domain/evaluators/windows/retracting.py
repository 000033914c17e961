"""What windows have told is taken back before they tell something else.

Of each open window what it told last is kept, an entry of its own: the windows as code read them.
Before it comes out once more this does again, marked, and the same code makes the same result of
it. What a session has told that has become a part of another, or ends later now, is taken back at
once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from sandbox.revisions import without_revision
from servioticy.domain.evaluators.operators import Entries, Output
from servioticy.domain.evaluators.windows.cutting import Closed
from servioticy.domain.evaluators.windows.head import Head, takes_back_sessions
from servioticy.domain.windows.model import Window

MAX_TOLD_BYTES = 60_000
"""Of the windows as code reads them; of what is larger nobody is told that it is taken back."""

MAX_DROPPED = 100
"""Of what windows have told, that one computation gives up; more goes later."""


MAX_PARTS = 50
"""Sessions that are parts of others now: of so many one computation takes back what they told."""


class _Told(msgspec.Struct, array_like=True):
    timestamp: int
    number: int
    """How many updates there were."""
    is_early: bool
    document: bytes


_told = msgspec.msgpack.Decoder(_Told)
_encoder = msgspec.msgpack.Encoder()


class Retractions:
    """Those of one composite. Where it takes nothing back, there are none."""

    def __init__(self, window: Window, entries: Entries, head: Head) -> None:
        self._always = window.revisions == "retract"
        self._are = self._always or takes_back_sessions(window)
        self._by_pane = window.kind == "session"
        self._entries = entries
        self._head = head

    def with_former(self, coming: Sequence[tuple[Closed, Output]]) -> list[Output]:
        """Return the outputs of these windows, each behind what it told last. Raises Lacking."""
        if not self._are:
            return [output for _, output in coming]
        self._entries.need([self._key(closed.number) for closed, _ in coming])
        outputs = []
        for closed, output in coming:
            value = self._entries.get(self._key(closed.number))
            told = None if value is None else _told.decode(value)
            if told is not None and self._always:
                outputs += _retraction(told)
            outputs.append(output)
            if self._always or not closed.is_early:
                self._note(closed, output)
        return outputs

    def of_parts(self) -> list[Output]:
        """Return what sessions have told that are others now, some at a time."""
        head = self._head
        some, head.parts = head.parts[:MAX_PARTS], head.parts[MAX_PARTS:]
        if not some:
            return []
        keys = list(map(self._key, some))
        self._entries.need(keys)
        found = [_told.decode(value) for value in map(self._entries.get, keys) if value]
        for key in keys:
            self._entries.drop(key)
        head.told = [each for each in head.told if each not in some]
        return [output for each in found for output in _retraction(each)]

    def give_up(self) -> bool:
        """Keep nothing of windows that are over, some at a time; whether others are left."""
        head = self._head
        if not head.told:
            return bool(head.parts)
        if self._by_pane:
            open_ = {each.begin for each in head.panes}.union(head.parts)
            over = [each for each in head.told if each not in open_]
        else:
            over = head.told[: bisect_left(head.told, head.over + 1)]
        left = set(self.clear(head.generation, over, MAX_DROPPED))
        gone = set(over) - left
        head.told = [each for each in head.told if each not in gone]
        return bool(left or head.parts)

    def clear(self, generation: int, windows: list[int], room: int) -> list[int]:
        """Keep nothing of these; returns those that are left."""
        some = windows[: max(0, min(room, MAX_DROPPED))]
        keys = [_key(generation, each) for each in some]
        self._entries.need(keys)
        for key in keys:
            self._entries.drop(key)
        return windows[len(some) :]

    def _note(self, closed: Closed, output: Output) -> None:
        """Keep what it tells now."""
        document = without_revision(output.document)
        if len(document) > MAX_TOLD_BYTES:
            document = b""
        told = _Told(output.timestamp, closed.updates, closed.is_early, document)
        self._entries.put(self._key(closed.number), _encoder.encode(told))
        place = bisect_left(self._head.told, closed.number)
        if self._head.told[place : place + 1] != [closed.number]:
            self._head.told.insert(place, closed.number)

    def _key(self, number: int) -> bytes:
        return _key(self._head.generation, number)


def _key(generation: int, number: int) -> bytes:
    return b"%d.r%d" % (generation, number)


def _retraction(told: _Told) -> list[Output]:
    if not told.document:  # too large for those who are told; what is stored goes all the same
        return [] if told.is_early else [Output(told.timestamp, b"")]
    early = b',"early":true' if told.is_early else b""
    marks = b',"revision":%d%b,"retracted":true}' % (told.number, early)
    return [Output(told.timestamp, told.document[:-1] + marks)]
