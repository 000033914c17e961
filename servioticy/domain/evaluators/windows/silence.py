"""Who has been silent for long, and who is back.

A stream is silent when it has sent, and then nothing for so long by the log's time. It is told
once, at a time that the composite has set itself, and again with the update that ends it. One that
never sent is not known to be there.
"""

from __future__ import annotations

from typing import Any

from servioticy.domain.evaluators.windows.head import Head, Member
from servioticy.domain.evaluators.windows.watermark import Members
from servioticy.domain.windowed import WindowsOf


class Silence:
    """What is known of it at one place in the log. Raises Lacking where that is not enough."""

    def __init__(self, code: WindowsOf, head: Head, members: Members, most: int) -> None:
        """At most so many are told at once, others by a time that is due immediately."""
        self._code = code
        self._after = code.window.gap or 0
        self._head = head
        self._members = members
        self._most = most

    def heard(self, name: str, timestamp: int) -> tuple[list[dict[str, Any]], int | None]:
        """An update has come: what is told of that, and when to look whether more do."""
        head = self._head
        head.taken += 1
        before = self._members.get(name)
        self._members.note(name, timestamp)
        if head.look_at is None:
            head.look_at = head.now + self._after
        if not before.is_silent:
            return [], head.look_at
        head.counted -= 1
        return [self._told(name, self._members.get(name), timestamp)], head.look_at

    def noticed(self) -> tuple[list[dict[str, Any]], int | None]:
        """A time has come: who has fallen silent by then, and when to look again."""
        head = self._head
        told: list[dict[str, Any]] = []
        head.look_at = None
        for name, member in self._members.all():
            if member.newest is None or member.is_silent:
                continue
            due = member.at + self._after
            if due <= head.now and len(told) < self._most:
                head.counted += 1
                silent = Member(member.newest, member.reached, member.at, is_silent=True)
                self._members.put(name, silent)
                told.append(self._told(name, silent, due * head.per_second // 1000))
            elif head.look_at is None or due < head.look_at:
                head.look_at = max(due, head.now)
        return told, head.look_at

    def _told(self, name: str, member: Member, timestamp: int) -> dict[str, Any]:
        """As code reads it, each later than the one before."""
        head = self._head
        if head.last_output is not None and timestamp <= head.last_output:
            timestamp = head.last_output + 1
        head.last_output = timestamp
        found = {
            "count": head.counted,
            "start": member.newest,
            "end": timestamp,
            "silent": member.is_silent,
            "stream": name,
        }
        windows = [found if name in names else None for names in self._code.inputs]
        return {"windows": windows, "lastUpdate": timestamp}
