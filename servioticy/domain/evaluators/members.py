"""What an operator keeps of each of the streams that it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar
from zlib import crc32

import msgspec

from servioticy.domain.evaluators.operators import Entries

IN_HEAD = 32
"""So many streams are kept with what changes anyway; more by pages."""

PAGES = 64

Member = TypeVar("Member", bound=msgspec.Struct)


class Members(Generic[Member]):
    """Of each stream, by its name. Raises Lacking where that is not known yet."""

    def __init__(
        self,
        entries: Entries,
        names: Sequence[str],
        few: dict[str, Member],
        nothing: Member,
        decoder: msgspec.msgpack.Decoder[dict[str, Member]],
    ) -> None:
        """`few` is where they are kept while they are few; of one that has not sent it is
        `nothing`. The decoder is of pages."""
        self._entries = entries
        self._names = names
        self._few = few
        self._nothing = nothing
        self._decoder = decoder
        self._pages: dict[bytes, dict[str, Member]] = {}

    def get(self, name: str) -> Member:
        """What is known of one."""
        return self._page(name).get(name, self._nothing)

    def put(self, name: str, member: Member) -> None:
        """Note what is known of one from here on."""
        page = self._page(name)
        page[name] = member
        if len(self._names) > IN_HEAD:
            self._entries.put(_key(name), msgspec.msgpack.encode(page))

    def all(self) -> Iterator[tuple[str, Member]]:
        """What is known of each."""
        if len(self._names) > IN_HEAD:
            self._entries.need(dict.fromkeys(map(_key, self._names)))
        return ((name, self.get(name)) for name in self._names)

    def _page(self, name: str) -> dict[str, Member]:
        if len(self._names) <= IN_HEAD:
            return self._few
        key = _key(name)
        if key not in self._pages:
            value = self._entries.get(key)
            self._pages[key] = {} if value is None else self._decoder.decode(value)
        return self._pages[key]


def _key(name: str) -> bytes:
    return b"m%d" % (crc32(name.encode("utf-8", "surrogatepass")) % PAGES)
