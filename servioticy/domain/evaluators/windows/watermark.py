"""How far event time has come: what holds it back, and when to look again.

The watermark is the least, over all streams that are read, of the newest timestamp, less a delay.
A stream that is silent for long does not hold it back; where all are, it goes on with the log's
time. It is worked out anew only where it can have reached the next end: mostly another stream than
the one that has sent holds it back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from zlib import crc32

from servioticy.domain.evaluators.operators import Entries
from servioticy.domain.evaluators.windows.head import NOTHING, Head, Member, read_members, write
from servioticy.domain.windows.model import Window

IN_HEAD = 32
"""So many streams are kept with what changes anyway; more by pages."""

PAGES = 64


class Members:
    """The streams that windows read, by their names. Raises Lacking where they are not known."""

    def __init__(self, head: Head, entries: Entries, names: Sequence[str]) -> None:
        self._head = head
        self._entries = entries
        self._names = names
        self._pages: dict[bytes, dict[str, Member]] = {}

    def note(self, name: str, timestamp: int) -> int | None:
        """Note an update; return the newest timestamp that its stream had before."""
        page, now = self._page(name), self._head.now
        before = page.get(name, NOTHING)
        reached = max(before.reached, min(timestamp, now * self._head.per_second // 1000))
        newest = timestamp if before.newest is None else max(timestamp, before.newest)
        self.put(name, Member(newest, reached, now))
        return before.newest

    def put(self, name: str, member: Member) -> None:
        """Note what is known of one from here on."""
        page = self._page(name)
        page[name] = member
        if len(self._names) > IN_HEAD:
            self._entries.put(_key(name), write(page))

    def get(self, name: str) -> Member:
        """What is known of one."""
        return self._page(name).get(name, NOTHING)

    def all(self) -> Iterator[tuple[str, Member]]:
        """What is known of each."""
        if len(self._names) > IN_HEAD:
            self._entries.need(dict.fromkeys(map(_key, self._names)))
        return ((name, self.get(name)) for name in self._names)

    def _page(self, name: str) -> dict[str, Member]:
        if len(self._names) <= IN_HEAD:
            return self._head.members
        key = _key(name)
        if key not in self._pages:
            value = self._entries.get(key)
            self._pages[key] = {} if value is None else read_members(value)
        return self._pages[key]


def _key(name: str) -> bytes:
    return b"m%d" % (crc32(name.encode("utf-8", "surrogatepass")) % PAGES)


class Watermark:
    """That of one composite, at one place in the log."""

    def __init__(self, window: Window, head: Head, members: Members) -> None:
        self._window = window
        self._head = head
        self._members = members
        self._delay = -(-window.delay * head.per_second // 1000)

    def reaches(self, end: int) -> int | None:
        """Where it is, if it has come as far as this end of a window; else None."""
        if self._window.time == "arrival":
            mark = self._head.now - self._delay
        elif self._is_held(end):
            return None
        else:
            mark = self._found()
        return mark if mark >= end else None

    def look_again(self, end: int) -> int:
        """When it may have come so far though nothing is sent, by the log's time in ms."""
        holder = self._head.holder
        if self._window.time == "event" and holder is not None:
            return self._sent(self._members.get(holder)) + self._window.idle
        units = end + self._delay
        return -(-units * 1000 // self._head.per_second)

    def _is_held(self, end: int) -> bool:
        """Whether the stream that held it back still does."""
        if self._head.holder is None:
            return False
        member = self._members.get(self._head.holder)
        return not self._is_idle(member) and member.reached - self._delay < end

    def _found(self) -> int:
        awake = [
            (member.reached, name)
            for name, member in self._members.all()
            if not self._is_idle(member)
        ]
        found, self._head.holder = min(awake, default=(self._now, None))
        return found - self._delay

    @property
    def _now(self) -> int:
        """The log's time in the unit of timestamps."""
        return self._head.now * self._head.per_second // 1000

    def _is_idle(self, member: Member) -> bool:
        return self._head.now - self._sent(member) >= self._window.idle

    def _sent(self, member: Member) -> int:
        """When it last sent; one that never did is waited for from the first update on."""
        return self._head.since if member.newest is None else member.at
