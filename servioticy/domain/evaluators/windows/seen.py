"""Which updates of other tenants' streams are in a pane: their history is not at this place of the
log, so what has been counted is noted beside it.

Of each a digest is kept, with its timestamp, in *leaves*: entries of a few, in order of time. So
an update writes one of them, those that come together write the same, and it is found by its
timestamp which leaf may have it. Where there are as many leaves as may be no more is noted: what
is older than its stream's newest may have been counted then, and is not once more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from hashlib import blake2b
from heapq import merge
from itertools import groupby
from typing import NamedTuple

from servioticy.domain.evaluators.operators import Entries

LEAF = 64
"""Updates in a leaf."""

MOST_LEAVES = 500
"""Of an input in a pane: 32,000 updates where they come in order, else half of that at least."""

DIRECTORY = b".n"
"""Ends the key of the entry that says which leaf begins where, if there are several; it begins
with that of the input in the pane. Behind it comes the number of a leaf."""

_SIZE = 16
"""Bytes of an update: its timestamp, and a digest of its stream."""

_PLACE = _SIZE + 2
"""Bytes of a leaf in the directory: where it begins, and its number."""

BEFORE = b".s%d"
"""Ends the key of an entry of a release that spread digests over 16 large ones."""


class Noted(NamedTuple):
    """How much is noted of an input in a pane."""

    leaves: int = 0
    is_full: bool = False

    @property
    def written(self) -> int:
        """As a number."""
        return ~self.leaves if self.is_full else self.leaves


def noted(written: int) -> Noted:
    """Return what such a number says."""
    return Noted(written) if written >= 0 else Noted(~written, is_full=True)


class Seen:
    """The entries of one composite. Raises Lacking where they are not known yet."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def may_have(self, key: bytes, known: Noted, stream: str, timestamp: int) -> bool:
        """Whether this update of the stream is noted, or may have been where there was no room."""
        if known.is_full or not known.leaves:
            return known.is_full
        update = _named(stream, timestamp)
        directory = self._directory(key, known)
        number = _number(directory, _place(directory, update))
        leaf = self._entries.get(_leaf(key, number)) or b""
        return _has(leaf, _behind(leaf, update), update)

    def note(self, key: bytes, known: Noted, stream: str, timestamp: int) -> Noted:
        """Note it; how much is noted from here on."""
        if known.is_full:
            return known
        update = _named(stream, timestamp)
        if not known.leaves:
            self._entries.add(_leaf(key, 0), update)
            return Noted(1)
        directory = self._directory(key, known)
        place = _place(directory, update)
        own = _leaf(key, _number(directory, place))
        leaf = self._entries.get(own) or b""
        at = _behind(leaf, update)
        if _has(leaf, at, update):
            return known
        if len(leaf) >= LEAF * _SIZE and known.leaves >= MOST_LEAVES:
            return known._replace(is_full=True)
        leaf = leaf[: at * _SIZE] + update + leaf[at * _SIZE :]
        if len(leaf) <= LEAF * _SIZE:
            self._entries.put(own, leaf)
            return known
        # What comes last is mostly followed by more: so the leaf before it stays full.
        cut = (LEAF if at == LEAF else LEAF // 2) * _SIZE
        self._entries.put(own, leaf[:cut])
        self._entries.add(_leaf(key, known.leaves), leaf[cut:])
        begin = (place + 1) * _PLACE
        new = leaf[cut : cut + _SIZE] + known.leaves.to_bytes(2, "big")
        self._keep_directory(key, known, directory[:begin] + new + directory[begin:])
        return Noted(known.leaves + 1)

    def join(
        self, several: Sequence[tuple[bytes, Noted]], into: bytes, most: int = MOST_LEAVES
    ) -> Noted:
        """Note with one, which is among them, what all of these have, each by its key.

        How much that has from here on: where it would be more than `most` leaves it is full.
        """
        before = dict(several)[into]
        self._entries.need([each for key, known in several for each in keys(key, known)])
        lists = [self._updates(key, known) for key, known in several]
        every = [update for update, _ in groupby(merge(*lists))]
        starts = range(0, len(every), LEAF)
        if any(known.is_full for _, known in several) or len(starts) > most:
            return before._replace(is_full=True)
        new = {
            _leaf(into, number): b"".join(every[start : start + LEAF])
            for number, start in enumerate(starts)
        }
        self._entries.need(new)
        for key, leaf in new.items():
            self._entries.put(key, leaf)
        if len(starts) > 1:
            places = [
                (every[start] if number else bytes(_SIZE)) + number.to_bytes(2, "big")
                for number, start in enumerate(starts)
            ]
            self._keep_directory(into, before, b"".join(places))
        for key in keys(into, before):
            if key not in new and (key != into + DIRECTORY or len(starts) < 2):
                self._entries.drop(key)
        return Noted(len(starts))

    def _updates(self, key: bytes, known: Noted) -> list[bytes]:
        """All that is noted there, in order."""
        leaves = [self._entries.get(_leaf(key, number)) or b"" for number in range(known.leaves)]
        return sorted(
            [leaf[at : at + _SIZE] for leaf in leaves for at in range(0, len(leaf), _SIZE)]
        )

    def _directory(self, key: bytes, known: Noted) -> bytes:
        if known.leaves < 2:
            return bytes(_PLACE)
        return self._entries.get(key + DIRECTORY) or bytes(_PLACE)

    def _keep_directory(self, key: bytes, known: Noted, directory: bytes) -> None:
        if known.leaves < 2:
            self._entries.add(key + DIRECTORY, directory)
        else:
            self._entries.put(key + DIRECTORY, directory)


def keys(key: bytes, known: Noted, first: int = 0) -> list[bytes]:
    """Return those of all entries of an input in a pane, the leaves from this one on."""
    leaves = [_leaf(key, number) for number in range(first, known.leaves)]
    return [*leaves, key + DIRECTORY] if known.leaves > 1 and not first else leaves


def keys_before(key: bytes, mask: int) -> list[bytes]:
    """Return those of the other release; the mask has a bit for each that there is."""
    return [key + BEFORE % number for number in range(mask.bit_length()) if mask >> number & 1]


def _leaf(key: bytes, number: int) -> bytes:
    return b"%b%b%d" % (key, DIRECTORY, number)


def _named(stream: str, timestamp: int) -> bytes:
    """An update, so that they are in order of their timestamps."""
    name = blake2b(stream.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return (timestamp + 2**63).to_bytes(8, "big") + name


def _place(directory: bytes, update: bytes) -> int:
    """Which leaf of a directory would have it."""
    places = range(len(directory) // _PLACE)
    found = bisect_right(
        places, update, key=lambda at: directory[at * _PLACE : at * _PLACE + _SIZE]
    )
    return max(0, found - 1)


def _number(directory: bytes, place: int) -> int:
    return int.from_bytes(directory[place * _PLACE + _SIZE : (place + 1) * _PLACE], "big")


def _behind(leaf: bytes, update: bytes) -> int:
    """How many updates of a leaf are no later than this one."""
    places = range(len(leaf) // _SIZE)
    return bisect_right(places, update, key=lambda at: leaf[at * _SIZE : (at + 1) * _SIZE])


def _has(leaf: bytes, behind: int, update: bytes) -> bool:
    return leaf[max(0, behind - 1) * _SIZE : behind * _SIZE] == update
