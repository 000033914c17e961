"""The operator of silence: who has sent nothing for long, and who is back.

A stream is silent when it has sent, and then nothing for so long by the log's time. It is told
once, at a time that the composite has set itself, and again with the update that ends it. One that
never sent is not known to be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec
import orjson

from sandbox.trees import Event
from servioticy.domain.evaluators.members import Members
from servioticy.domain.evaluators.operators import Answer, Entries, Output, Step
from servioticy.domain.operator_code import OperatorCode
from servioticy.domain.time_units import PER_SECOND, unit_of
from servioticy.domain.windowed import WindowsOf
from servioticy.domain.windows.model import Silence

HEAD = b"s"
"""The key of what is kept."""

MAX_TOLD = 100
"""Streams of which one computation tells; of others a time tells that is due at once."""

MAX_NAMED = 20
"""Silent streams whose names are told to people."""


class Heard(msgspec.Struct, array_like=True):
    """What is known of one stream."""

    newest: int | None = None
    """Its newest timestamp; None: it has not sent."""
    at: int = 0
    """When it last sent, by the log's time in ms."""
    is_silent: bool = False
    """Whether it has been told that it is."""


NOTHING = Heard()


class Head(msgspec.Struct, array_like=True):
    """What is known of all together."""

    now: int = 0
    """The newest time of the log, in ms."""
    look_at: int | None = None
    """When somebody may have fallen silent, by the log's time in ms."""
    last_output: int | None = None
    """The timestamp of it: the next one is newer."""
    silent: int = 0
    """How many are."""
    named: list[str] = []
    """Some of them."""
    members: dict[str, Heard] = {}
    """The streams by their names, where they are few."""


_heads = msgspec.msgpack.Decoder(Head)
_pages = msgspec.msgpack.Decoder(dict[str, Heard])


class Silences:
    """The operator."""

    takes_answers = False

    def keys(self, _code: OperatorCode, _argument: int | None, _event: Event) -> Sequence[bytes]:
        """What every computation looks at."""
        return [HEAD]

    def step(self, step: Step, entries: Entries) -> Answer:
        """Note an update, or a time that has come; who has fallen silent, or is back, is told."""
        if step.due not in (None, HEAD):  # of a version that had windows
            entries.drop(step.due)
            return Answer()
        return _Computation(step, entries).answer()


def told(value: bytes) -> dict[str, Any]:
    """Return what people are told: how many streams are silent, and some of their names."""
    head = _heads.decode(value)
    return {"silent": head.silent, "streams": head.named}


class _Computation:
    """One of them. Raises Lacking where what is known is not enough."""

    def __init__(self, step: Step, entries: Entries) -> None:
        code = cast(WindowsOf, step.code.operator)
        self._step = step
        self._entries = entries
        self._inputs = code.inputs
        self._after = cast(Silence, code.window).after
        value = entries.get(HEAD)
        self._head = Head() if value is None else _heads.decode(value)
        self._head.now = max(self._head.now, step.at)
        self._members = Members(entries, code.members, self._head.members, NOTHING, _pages)

    def answer(self) -> Answer:
        """What comes of it."""
        head = self._head
        changed = [] if self._step.argument is None else self._heard()
        if head.look_at is not None and head.look_at <= head.now:
            changed += self._noticed()
        outputs = list(self._told(changed))
        later = None if head.look_at is None else max(head.look_at, head.now + 1)
        self._entries.put(HEAD, msgspec.msgpack.encode(head), later)
        return Answer(outputs)

    def _heard(self) -> list[tuple[str, int]]:
        """The stream that has sent, if it is back, and the timestamp by which that is told."""
        head, name, timestamp = self._head, self._step.source, self._step.trigger.timestamp
        before = self._members.get(name)
        newest = timestamp if before.newest is None else max(timestamp, before.newest)
        self._members.put(name, Heard(newest, head.now))
        look_at = head.now + self._after
        head.look_at = look_at if head.look_at is None else min(head.look_at, look_at)
        return [(name, timestamp)] if before.is_silent else []

    def _noticed(self) -> list[tuple[str, int]]:
        """Who has fallen silent by now, and the timestamps by which that is told."""
        head = self._head
        head.look_at = None
        found: list[tuple[str, int]] = []
        for name, member in self._members.all():
            if member.newest is None or member.is_silent:
                continue
            due = member.at + self._after
            if due <= head.now and len(found) < MAX_TOLD:
                self._members.put(name, Heard(member.newest, member.at, is_silent=True))
                found.append((name, self._timestamp(member.newest, due)))
            elif head.look_at is None or due < head.look_at:
                head.look_at = due
        return found

    def _timestamp(self, newest: int, due: int) -> int:
        """The time when a stream fell silent, as it counts time; if it does, else one later."""
        unit = unit_of(newest, due / 1000)
        return newest + 1 if unit is None else due * PER_SECOND[unit] // 1000

    def _told(self, changed: Sequence[tuple[str, int]]) -> Iterator[Output]:
        """As code reads it, each later than the one before."""
        if not changed:
            return
        head = self._head
        silent = [name for name, member in self._members.all() if member.is_silent]
        head.silent, head.named = len(silent), silent[:MAX_NAMED]
        for name, timestamp in changed:
            if head.last_output is not None and timestamp <= head.last_output:
                timestamp = head.last_output + 1
            head.last_output = timestamp
            member = self._members.get(name)
            found = {
                "count": head.silent,
                "start": member.newest,
                "end": timestamp,
                "silent": member.is_silent,
                "stream": name,
            }
            windows = [found if name in names else None for names in self._inputs]
            document = orjson.dumps({"windows": windows, "lastUpdate": timestamp})
            yield Output(timestamp, document)
