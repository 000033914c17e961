"""What is in panes: aggregates of each input, and by the values of channels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from zlib import crc32

import msgspec

from servioticy.domain.evaluators.operators import Ends, Entries
from servioticy.domain.evaluators.windows import seen
from servioticy.domain.evaluators.windows.inputs import (
    MAX_UPDATES_BYTES,
    Input,
    Taken,
    Updates,
    name_of,
    updates_in,
)
from servioticy.domain.verdicts import ERROR
from servioticy.domain.windows.aggregates import Aggregate, TooManyChannels
from servioticy.domain.windows.model import Uses

BUCKETS = 64
"""Entries over which the values of a channel are spread."""

MAX_KEYS = 10_000
"""Values of a channel by which one window has aggregates."""

MAX_WINDOW_BYTES = 8 * 1024 * 1024
"""Of all that is kept of one window: it is read and merged while nobody else is computed."""

MAX_JOINED = 500
"""Leaves of what is noted of others' streams where sessions become one, of all inputs."""

UPDATES = b".u"
"""Ends the key of the updates of an input in a pane."""


class _Pane(msgspec.Struct, array_like=True):
    """What is kept of one input in one pane."""

    aggregate: bytes
    buckets: list[int] = []
    """Of each channel by which there are aggregates, a bit for each bucket that has some."""
    has_updates: bool = False
    """Whether there are updates themselves."""
    size: int = 0
    """The bytes of what is read with it under other keys."""
    seen: int = 0
    """Which entries there are of a release that noted updates of others' streams otherwise."""
    noted: int = 0
    """How much is noted of others' streams (`seen.py`)."""


_panes = msgspec.msgpack.Decoder(_Pane)
_buckets = msgspec.msgpack.Decoder(dict[str, bytes])
_encoder = msgspec.msgpack.Encoder()


class Contents:
    """The contents of the panes of one composite. Raises Lacking where they are not known yet."""

    def __init__(self, entries: Entries, arguments: int, uses: Uses, generation: int = 0) -> None:
        """`arguments` are how many inputs there are."""
        self._entries = entries
        self._arguments = arguments
        self._uses = uses
        self._generation = generation
        self._seen = seen.Seen(entries)

    def add(self, pane: int, taken: Taken) -> None:
        """Take an update into a pane. Raises Ends where it has more than it may."""
        key = self._key(taken.argument, pane)
        kept = self._pane(key)
        aggregate = (
            self._read(kept.aggregate) if kept.aggregate else Aggregate(self._uses.sketches)
        )
        _add(aggregate, taken)
        kept.aggregate = aggregate.encode()
        for number, channel in enumerate(self._uses.by):
            value = name_of(taken.channels.get(channel, {}).get("current-value"))
            if value is not None:
                self._add_by(kept, number, value, pane, taken)
        if self._uses.updates:
            kept.size += self._add_update(pane, taken)
            kept.has_updates = True
        if taken.outside:
            known = seen.noted(kept.noted)
            known = self._seen.note(key, known, taken.outside, taken.timestamp)
            kept.noted = known.written
        self._entries.put(key, _encoder.encode(kept))

    def may_have(self, pane: int, taken: Taken) -> bool:
        """Whether a pane has this update of another tenant's stream, or that is not known."""
        key = self._key(taken.argument, pane)
        kept = self._pane(key)
        if kept.seen:
            return True
        known = seen.noted(kept.noted)
        return self._seen.may_have(key, known, taken.outside, taken.timestamp)

    def merge(self, panes: Sequence[int], into: int) -> None:
        """Put what is in these panes into one of them; the others are to be given up."""
        whole = self.read(panes)
        new: dict[bytes, bytes] = {}
        for argument, found in enumerate(whole):
            noted = self._join_noted(argument, panes, into)
            if found is not None:
                new |= self._encoded(argument, into, found, noted)
            elif any(noted):  # what they had has been told, and is kept no more
                new[self._key(argument, into)] = self._only_noted(*noted)
        self._entries.need(new)
        for each_key, content in new.items():
            self._entries.put(each_key, content)

    def make_again(self, pane: int, argument: int, updates: Sequence[Taken]) -> int:
        """Let these be all that a pane has of an input; how many it had. Raises Ends."""
        self.know([pane])
        before = self.count(pane, argument)
        new = self._encoded(argument, pane, self._of(updates))
        gone = [each for each in self._keys_of(argument, pane) if each not in new]
        self._entries.need(new)
        for key in gone:
            self._entries.drop(key)
        for key, content in new.items():
            self._entries.put(key, content)
        return before

    def _join_noted(self, argument: int, panes: Sequence[int], into: int) -> tuple[int, int]:
        """Note with one pane what these have; what that has from here on, as a pane has it."""
        heads = {pane: self._pane(self._key(argument, pane)) for pane in panes}
        theirs = {pane: seen.noted(head.noted) for pane, head in heads.items()}
        if any(head.seen for head in heads.values()):  # of those it is not known which they are
            return heads[into].seen, theirs[into]._replace(is_full=True).written
        if not any(head.noted for head in heads.values()):
            return 0, 0
        several = [(self._key(argument, pane), known) for pane, known in theirs.items()]
        most = MAX_JOINED // self._arguments
        return 0, self._seen.join(several, self._key(argument, into), most).written

    def count(self, pane: int, argument: int) -> int:
        """How many updates a pane has of an input."""
        self._know_heads([pane])
        kept = self._pane(self._key(argument, pane)).aggregate
        return self._read(kept).count if kept else 0

    def _of(self, updates: Sequence[Taken]) -> Input:
        """What is to be kept of these. Raises Ends."""
        whole = Aggregate(self._uses.sketches)
        by: list[dict[str, Aggregate]] = [{} for _ in self._uses.by]
        kept = Updates() if self._uses.updates else None
        for each in updates:
            _add(whole, each)
            for channel, keys in zip(self._uses.by, by, strict=True):
                value = name_of(each.channels.get(channel, {}).get("current-value"))
                if value is not None:
                    _add(keys.setdefault(value, Aggregate(self._uses.sketches)), each)
            if kept is not None:
                kept.size += len(each.document)
                kept.kept.append((each.timestamp, each.order, each.document))
        return Input(whole, by, kept)

    def _encoded(
        self, argument: int, pane: int, found: Input, noted: tuple[int, int] = (0, 0)
    ) -> dict[bytes, bytes]:
        """That as what is kept of an input in a pane, by keys; `noted` as a pane has it."""
        before, known = noted
        kept = _Pane(found.aggregate.encode(), [0] * len(self._uses.by), seen=before, noted=known)
        own: dict[bytes, bytes] = {}
        for number, keys in enumerate(found.by):
            spread: dict[int, dict[str, bytes]] = {}
            for value, each in keys.items():
                spread.setdefault(_bucket(value), {})[value] = each.encode()
            for bucket, some in spread.items():
                kept.buckets[number] |= 1 << bucket
                own[self._key(argument, pane, number, bucket)] = _encoder.encode(some)
        if found.updates is not None:
            kept.has_updates = True
            own[self._key(argument, pane) + UPDATES] = found.updates.encoded
        kept.size = sum(map(len, own.values()))
        own[self._key(argument, pane)] = _encoder.encode(kept)
        return own

    def drop(self, panes: Sequence[int], most: int, least: int = 1) -> int:
        """Keep nothing of these panes any more; of how many of them that is so.

        Of the first ones that have no more than so many entries, and of so many at least; but
        where the first one has more of what is noted, that goes before, and the pane later.
        """
        self._know_heads(panes)
        keys: list[bytes] = []
        gone = 0
        for pane in panes:
            theirs = [*self._keys([pane]), *self._keys_seen(pane)]
            if len(keys) + len(theirs) > most:
                if not gone and self._drop_noted(pane, most):
                    return 0
                if gone >= least:
                    break
            keys += theirs
            gone += 1
        self._entries.need(keys)
        for key in keys:
            self._entries.drop(key)
        return gone

    def _drop_noted(self, pane: int, most: int) -> bool:
        """Drop the last leaves of one input, so many entries at most; False: there are none."""
        for argument in range(self._arguments):
            key = self._key(argument, pane)
            kept = self._pane(key)
            known = seen.noted(kept.noted)
            first = max(2, known.leaves - most + 1)  # of several the directory stays
            if first < known.leaves:
                gone = seen.keys(key, known, first)
                self._entries.need(gone)
                for each in gone:
                    self._entries.drop(each)
                kept.noted = known._replace(leaves=first).written
                self._entries.put(key, _encoder.encode(kept))
                return True
        return False

    def discard(self, pane: int) -> None:
        """Keep nothing of a pane but which of others' updates it had."""
        self.know([pane])
        heads = {
            self._key(n, pane): self._pane(self._key(n, pane)) for n in range(self._arguments)
        }
        for key in list(self._keys([pane])):
            self._entries.drop(key)
        for key, head in heads.items():
            if head.seen or head.noted:
                self._entries.put(key, self._only_noted(head.seen, head.noted))

    def _only_noted(self, before: int, known: int) -> bytes:
        return _encoder.encode(_Pane(b"", [0] * len(self._uses.by), seen=before, noted=known))

    def sizes(self, windows: Sequence[Sequence[int]]) -> list[int]:
        """The bytes of what is kept of each of some windows, which are panes."""
        self._know_heads(dict.fromkeys(chain.from_iterable(windows)))
        known: dict[int, int] = {}
        for pane in chain.from_iterable(windows):
            if pane not in known:
                known[pane] = self._size(pane)
        return [sum([known[pane] for pane in panes]) for panes in windows]

    def _size(self, pane: int) -> int:
        values = [self._entries.get(self._key(n, pane)) for n in range(self._arguments)]
        return sum([len(each) + _panes.decode(each).size for each in values if each is not None])

    def read(self, panes: Sequence[int]) -> list[Input | None]:
        """What there is of each input in these panes together; None: nothing. Raises Ends."""
        if self.sizes([panes])[0] > MAX_WINDOW_BYTES:
            raise Ends(ERROR, f"more than {MAX_WINDOW_BYTES} bytes are kept of a window")
        self.know(panes)
        return [self._input(argument, panes) for argument in range(self._arguments)]

    def _input(self, argument: int, panes: Sequence[int]) -> Input | None:
        whole: Aggregate | None = None
        updates = Updates() if self._uses.updates else None
        by: list[dict[str, Aggregate]] = [{} for _ in self._uses.by]
        for pane in panes:
            value = self._entries.get(self._key(argument, pane))
            if value is None:
                continue
            kept = _panes.decode(value)
            if not kept.aggregate:
                continue
            found = self._read(kept.aggregate)
            if whole is None:
                whole = found
            else:
                _merge(whole, found)
            for number, mask in enumerate(kept.buckets):
                for key in self._bucket_keys(argument, pane, number, mask):
                    self._merge_by(by[number], self._entries.get(key) or b"\x80")
            if updates is not None:
                more = self._updates(argument, pane)
                updates = Updates(updates.size + more.size, updates.kept + more.kept)
        return None if whole is None else Input(whole, by, updates)

    def _merge_by(self, keys: dict[str, Aggregate], bucket: bytes) -> None:
        for value, encoded in _buckets.decode(bucket).items():
            found = self._read(encoded)
            before = keys.get(value)
            if before is None:
                keys[value] = found
            else:
                _merge(before, found)
        if len(keys) > MAX_KEYS:
            raise Ends(ERROR, f"a window has aggregates by at most {MAX_KEYS} values of a channel")

    def _add_by(self, kept: _Pane, number: int, value: str, pane: int, taken: Taken) -> None:
        bucket = _bucket(value)
        kept.buckets[number] |= 1 << bucket
        key = self._key(taken.argument, pane, number, bucket)
        encoded = self._entries.get(key) or b""
        found = _buckets.decode(encoded or b"\x80")
        before = found.get(value)
        aggregate = Aggregate(self._uses.sketches) if before is None else self._read(before)
        _add(aggregate, taken)
        found[value] = aggregate.encode()
        new = _encoder.encode(found)
        kept.size += len(new) - len(encoded)
        self._entries.put(key, new)

    def _add_update(self, pane: int, taken: Taken) -> int:
        """How many bytes more are kept."""
        before = self._updates(taken.argument, pane)
        found = Updates(before.size + len(taken.document), before.kept)
        if found.size <= MAX_UPDATES_BYTES:
            found.kept.append((taken.timestamp, taken.order, taken.document))
        key = self._key(taken.argument, pane) + UPDATES
        new = found.encoded
        more = len(new) - len(self._entries.get(key) or b"")
        self._entries.put(key, new)
        return more

    def _updates(self, argument: int, pane: int) -> Updates:
        return updates_in(self._entries.get(self._key(argument, pane) + UPDATES))

    def know(self, panes: Iterable[int]) -> None:
        """Raise Lacking unless all that is kept of these panes is known."""
        panes = list(panes)
        self._know_heads(panes)
        self._entries.need(self._keys(panes))

    def _know_heads(self, panes: Iterable[int]) -> None:
        self._entries.need([self._key(n, pane) for pane in panes for n in range(self._arguments)])

    def _pane(self, key: bytes) -> _Pane:
        value = self._entries.get(key)
        return _Pane(b"", [0] * len(self._uses.by)) if value is None else _panes.decode(value)

    def _keys(self, panes: Iterable[int]) -> Iterator[bytes]:
        """The keys of all that is kept of these panes, which have to be known."""
        for pane in panes:
            for argument in range(self._arguments):
                yield from self._keys_of(argument, pane)

    def _keys_seen(self, pane: int) -> list[bytes]:
        found: list[bytes] = []
        for argument in range(self._arguments):
            key = self._key(argument, pane)
            kept = self._pane(key)
            found += seen.keys(key, seen.noted(kept.noted)) + seen.keys_before(key, kept.seen)
        return found

    def _keys_of(self, argument: int, pane: int) -> Iterator[bytes]:
        key = self._key(argument, pane)
        value = self._entries.get(key)
        if value is None:
            return
        yield key
        kept = _panes.decode(value)
        if kept.has_updates:
            yield key + UPDATES
        for number, mask in enumerate(kept.buckets):
            yield from self._bucket_keys(argument, pane, number, mask)

    def _read(self, value: bytes) -> Aggregate:
        return Aggregate.decode(value)

    def _bucket_keys(self, argument: int, pane: int, number: int, mask: int) -> Iterator[bytes]:
        some = (each for each in range(BUCKETS) if mask >> each & 1)
        return (self._key(argument, pane, number, each) for each in some)

    def _key(self, argument: int, pane: int, *more: int) -> bytes:
        return b".".join([b"%d" % each for each in (self._generation, pane, argument, *more)])


def _add(aggregate: Aggregate, taken: Taken) -> None:
    """Raises Ends where that are too many channels."""
    try:
        aggregate.add(taken.channels, taken.timestamp, taken.order)
    except TooManyChannels as error:
        raise Ends(ERROR, str(error)) from error


def _merge(aggregate: Aggregate, other: Aggregate) -> None:
    """Raises Ends as the other does."""
    try:
        aggregate.merge(other)
    except TooManyChannels as error:
        raise Ends(ERROR, str(error)) from error


def _bucket(value: str) -> int:
    return crc32(value.encode("utf-8", "surrogatepass")) % BUCKETS
