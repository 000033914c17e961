"""How far event time has come: what holds it back, and when to look again.

The watermark is the least, over all streams that are read, of the newest timestamp, less a delay.
A stream that is silent for long does not hold it back; where all are, it goes on with the log's
time. It is worked out anew only where it can have reached the next end: mostly another stream than
the one that has sent holds it back.
"""

from __future__ import annotations

from servioticy.domain.evaluators.members import Members
from servioticy.domain.evaluators.windows.head import Head, Member
from servioticy.domain.windows.model import Window


class Watermark:
    """That of one composite, at one place in the log."""

    def __init__(self, window: Window, head: Head, members: Members[Member]) -> None:
        self._window = window
        self._head = head
        self._members = members
        self._delay = -(-window.delay * head.per_second // 1000)

    def note(self, name: str, timestamp: int) -> int | None:
        """Note an update; return the newest timestamp that its stream had before."""
        before, now = self._members.get(name), self._head.now
        reached = max(before.reached, min(timestamp, self._now))
        newest = timestamp if before.newest is None else max(timestamp, before.newest)
        self._members.put(name, Member(newest, reached, now))
        return before.newest

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
