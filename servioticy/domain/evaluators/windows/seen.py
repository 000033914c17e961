"""Which updates of other tenants' streams are in a pane: their history is not at this place of the
log, so what has been counted is noted beside it.

Of each a digest is kept, and they are spread over some entries. Where one is full no more is noted
in it: what is older than its stream's newest may have been counted then, and is not once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from servioticy.domain.evaluators.operators import Entries

BUCKETS = 16
"""Entries of an input in a pane over which digests are spread."""

MOST = 2000
"""Digests of an entry: some 32,000 of an input in a pane."""

SEEN = b".s%d"
"""Ends the key of an entry; it begins with that of the input in the pane."""

_SIZE = 8
"""Bytes of a digest."""


class Seen:
    """The entries of one composite. A *mask* has a bit for each of an input in a pane that there
    is. Raises Lacking where they are not known yet."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def may_have(self, key: bytes, mask: int, stream: str, timestamp: int) -> bool:
        """Whether this update of the stream is noted, or may have been where there was no room."""
        number, digest = _place(stream, timestamp)
        if not mask >> number & 1:
            return False
        noted = self._entries.get(key + SEEN % number) or b""
        return len(noted) >= MOST * _SIZE or digest in _digests(noted)

    def note(self, key: bytes, mask: int, stream: str, timestamp: int) -> int:
        """Note it; the mask from here on."""
        number, digest = _place(stream, timestamp)
        own = key + SEEN % number
        if not mask >> number & 1:
            self._entries.add(own, digest)
            return mask | 1 << number
        noted = self._entries.get(own) or b""
        if len(noted) < MOST * _SIZE:
            self._entries.put(own, noted + digest)
        return mask

    def join(self, several: Iterable[tuple[bytes, int]], into: bytes) -> int:
        """Note with one what these have, each by its key and mask; the mask from here on."""
        noted: dict[int, list[bytes]] = {}
        for key, mask in several:
            for number in _numbers(mask):
                value = self._entries.get(key + SEEN % number) or b""
                noted.setdefault(number, []).append(value)
        own = {into + SEEN % number: values for number, values in noted.items()}
        self._entries.need(own)
        for key, values in own.items():
            every = dict.fromkeys([digest for value in values for digest in _digests(value)])
            self._entries.put(key, b"".join(list(every)[:MOST]))
        return sum([1 << number for number in noted])


def keys(key: bytes, mask: int) -> list[bytes]:
    """Return those of all entries of an input in a pane."""
    return [key + SEEN % number for number in _numbers(mask)]


def _place(stream: str, timestamp: int) -> tuple[int, bytes]:
    """In which entry an update is noted, and as what."""
    named = b"%d %b" % (timestamp, stream.encode("utf-8", "surrogatepass"))
    digest = blake2b(named, digest_size=_SIZE).digest()
    return digest[0] % BUCKETS, digest


def _numbers(mask: int) -> Iterator[int]:
    return (number for number in range(BUCKETS) if mask >> number & 1)


def _digests(value: bytes) -> list[bytes]:
    return [value[at : at + _SIZE] for at in range(0, len(value), _SIZE)]
