"""What history has of the streams that an operator reads, as it stands where it computes.

The store is asked under keys, as for what composites keep, and once for a piece of the log. What
has happened in the piece since is not stored yet: it is noted while trees grow. Both together are
what taking the log one update at a time would have found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

Place: TypeAlias = tuple[int, int, tuple[int, ...]]
"""The number of a tree in the piece, and the depth and path of an update in it."""


FIRST = -(2**63)
"""The first timestamp that there may be."""


class Wanted(NamedTuple):
    """The updates of these streams from one timestamp until another, as many as that."""

    streams: tuple[str, ...]
    begin: int
    until: int
    most: int
    """Where there are more, nobody gets any."""
    is_newest: bool = False
    """Of each stream the newest alone."""


class PastUpdate(NamedTuple):
    """One of them."""

    stream: str
    timestamp: int
    document: bytes


class PastKey(bytes):
    """The key under which an operator asks for a part of the past."""

    @property
    def wanted(self) -> Wanted:
        """What that is."""
        return _wanted.decode(self)


_encoder = msgspec.msgpack.Encoder()
_wanted = msgspec.msgpack.Decoder(Wanted)
_updates = msgspec.msgpack.Decoder(list[PastUpdate])


def past_key(wanted: Wanted) -> PastKey:
    """Return the key for it."""
    return PastKey(_encoder.encode(wanted))


def answer(updates: Iterable[PastUpdate]) -> bytes:
    """Return what is known under such a key: those that are stored, in order of the log."""
    return _encoder.encode(list(updates))


class _Happening(NamedTuple):
    place: Place
    document: bytes
    """Empty: what the stream had of that timestamp was taken back."""


class Unknown(Exception):
    """Nobody here knows what history has of a stream: it is another tenant's."""


class Happened:
    """The updates that streams have got since the store was asked, in order of the log."""

    def __init__(self, before: Happened | None = None) -> None:
        """`before`: what has happened before that."""
        self._before = before
        self._of: dict[str, dict[int, list[_Happening]]] = {}

    def note(self, stream: str, timestamp: int, document: bytes, place: Place) -> None:
        """A stream has got an update there; an empty one: it has none of this timestamp now."""
        happening = _Happening(place, document)
        self._of.setdefault(stream, {}).setdefault(timestamp, []).append(happening)

    def take(self, other: Happened) -> None:
        """Note all that the other one has noted."""
        for stream, theirs in other._of.items():
            mine = self._of.setdefault(stream, {})
            for timestamp, some in theirs.items():
                mine.setdefault(timestamp, []).extend(some)

    def before(self, stream: str, timestamp: int, place: Place) -> bytes | None:
        """What the stream last got with this timestamp, before that place; empty: it has none."""
        for each in reversed(self._of.get(stream, {}).get(timestamp, ())):
            if each.place < place:
                return each.document
        return None if self._before is None else self._before.before(stream, timestamp, place)

    def between(
        self, stream: str, begin: int, until: int
    ) -> Mapping[int, tuple[Place, PastUpdate]]:
        """What it got with timestamps of that span, and where; of each the last one."""
        known = {} if self._before is None else dict(self._before.between(stream, begin, until))
        for timestamp, some in self._of.get(stream, {}).items():
            if begin <= timestamp <= until:
                place, document = some[-1]
                known[timestamp] = place, PastUpdate(stream, timestamp, document)
        return known


class Moment(NamedTuple):
    """What has happened by now, and the place of the update that wakes the operator."""

    happened: Happened
    place: Place


NOW = Moment(Happened(), (0, 0, ()))
"""Where nothing has happened since the store was asked."""


class Past:
    """That of the streams that one composite reads. Raises Lacking where it is not known yet."""

    def __init__(self, get: Callable[[bytes], bytes | None], moment: Moment) -> None:
        """`get` returns what is known under a key: None where nobody here can know it, as of
        other tenants' streams, or where it is too much."""
        self._get = get
        self._happened, self._place = moment

    def at(self, stream: str, timestamp: int) -> bytes | None:
        """What a stream had of this timestamp before what wakes the operator; None: nothing."""
        stored = self._stored(Wanted((stream,), timestamp, timestamp, 1))
        if stored is None:
            return None
        happened = self._happened.before(stream, timestamp, self._place)
        if happened is not None:
            return happened or None
        return stored[0].document if stored else None

    def between(
        self, streams: Sequence[str], begin: int, until: int, most: int
    ) -> list[PastUpdate] | None:
        """What they have of this span, what wakes the operator too, by timestamps; of equal ones
        in order of the log. None where that is more than `most`, or nobody knows."""
        stored = self._stored(Wanted(tuple(streams), begin, until, most))
        if stored is None:
            return None
        found = {(each.stream, each.timestamp): each for each in stored}
        happened = [
            each
            for stream in streams
            for each in self._happened.between(stream, begin, until).values()
        ]
        for _place, update in sorted(happened, key=lambda each: each[0]):
            found.pop((update.stream, update.timestamp), None)
            if update.document:
                found[update.stream, update.timestamp] = update
        if len(found) > most:
            return None
        return sorted(found.values(), key=lambda each: each.timestamp)

    def newest(self, streams: Sequence[str], until: int) -> PastUpdate | None:
        """The newest update that they have by this timestamp, the first of equals.

        Raises Unknown.
        """
        stored = self._stored(Wanted(tuple(streams), FIRST, until, len(streams), True))
        if stored is None:
            raise Unknown
        found = {each.stream: each for each in stored}
        best: PastUpdate | None = None
        for stream in streams:
            each = self._newest_of(stream, found.get(stream), until)
            if each is not None and (best is None or each.timestamp > best.timestamp):
                best = each
        return best

    def _newest_of(self, stream: str, stored: PastUpdate | None, until: int) -> PastUpdate | None:
        """That of one stream, whose newest stored one is known. Raises Unknown."""
        happened = self._happened.between(stream, FIRST, until)
        while stored is not None and stored.timestamp in happened:
            _place, instead = happened[stored.timestamp]
            if instead.document:
                break
            earlier = Wanted((stream,), FIRST, stored.timestamp - 1, 1, True)
            before = self._stored(earlier)  # it was taken back: the one before it counts
            if before is None:
                raise Unknown
            stored = before[0] if before else None
        there = [each for _place, each in happened.values() if each.document]
        some = there if stored is None else [*there, stored]
        return max(some, key=lambda each: each.timestamp, default=None)

    def _stored(self, wanted: Wanted) -> list[PastUpdate] | None:
        value = self._get(past_key(wanted))
        return None if value is None else _updates.decode(value)
