"""What the windows of one composite stream keep, beside what is in their panes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

from servioticy.domain.evaluators.members import IN_HEAD
from servioticy.domain.windows.model import Window

HEAD = b"w"
"""The key of it."""

NEVER = -(2**63)
"""Earlier than every timestamp."""

MAX_PANES = 2000
"""Panes of one composite stream that are kept at once, where they fit into the head."""

_HEAD_BYTES = 64_000
"""Of a head: an entry has a little more."""
_PANE_BYTES, _FRESH_BYTES, _NUMBER_BYTES, _MEMBER_BYTES = 30, 19, 9, 32
"""At most, as MessagePack: of a pane, of one that is still to come out, of a window by its number,
and of a member beside its name."""
_BESIDE = 1500
"""Of all else."""
_WINDOWS = 100
"""So many windows may be open beyond one for each pane, where they come out more than once."""


def panes_that_fit(window: Window, members: Sequence[str]) -> int:
    """How many panes a head has room for, with all that may have to be noted of each.

    `members` are the names of the streams that the windows read.
    """
    numbers = (window.fold is not None) + (window.when is not None)
    told = window.revisions == "retract" or takes_back_sessions(window)
    numbers += 1 + (window.kind == "session") if told else 0
    fresh = (window.early is not None) + (window.lateness > 0)
    room = _HEAD_BYTES - _BESIDE - _WINDOWS * numbers * _NUMBER_BYTES
    if len(members) <= IN_HEAD:
        room -= sum([len(each.encode("utf-8", "replace")) + _MEMBER_BYTES for each in members])
    more = 4 * window.revises + 8 * takes_back_sessions(window)
    each = _PANE_BYTES + more + fresh * _FRESH_BYTES + numbers * _NUMBER_BYTES
    return min(MAX_PANES, room // each)


def takes_back_sessions(window: Window) -> bool:
    """Tell whether late updates extend and merge sessions that are out, which are taken back."""
    return window.kind == "session" and window.lateness > 0


class Member(msgspec.Struct, array_like=True):
    """A stream that the windows read, as far as it holds the watermark back."""

    newest: int | None = None
    """Its newest timestamp; None: it has not sent."""
    reached: int = -(2**62)
    """How far event time has come there: the newest of its timestamps, each taken as no later
    than the log's time when it came. So a fast clock makes nobody late."""
    at: int = 0
    """When it last sent, by the log's time in ms."""


NOTHING = Member()
"""A stream of which nothing is known."""


class Pane(msgspec.Struct, array_like=True):
    """A piece of time, a session, or some updates one after the other."""

    begin: int
    """By which its contents are found; of updates one after the other, which of all it is."""
    oldest: int
    newest: int
    """The timestamps in it."""
    told: int = 0
    """How many of its updates are kept no more: they were told, or others took their place."""
    out: int | None = None
    """Of a session: where it ended as its result came out; None: that is not out."""


class Gone(msgspec.Struct, array_like=True):
    """Panes of windows that have ended, or of a version with others."""

    generation: int
    arguments: int
    panes: list[int]
    folded: list[int] = []
    """Windows that have states of a fold."""
    told: list[int] = []
    """Windows of which it is kept what they told last."""

    @property
    def is_left(self) -> bool:
        """Whether any of it is still kept."""
        return bool(self.panes or self.folded or self.told)


class Head(msgspec.Struct, array_like=True):
    """Changes with every update, so it is small but for its panes."""

    code: bytes
    """What windows these are; of a version with others these are given up."""
    arguments: int
    """How many inputs they have."""
    per_second: int
    """Units of timestamps in a second."""
    since: int
    """The log's time of the first update, in ms."""
    now: int
    """The newest time of the log, in ms."""
    taken: int = 0
    """How many updates have come."""
    closed: int = NEVER
    """Windows that end here or earlier are closed."""
    holder: str | None = None
    """The name of the stream that holds the watermark back, if one does."""
    panes: list[Pane] = []
    """In order."""
    members: dict[str, Member] = {}
    """The streams by their names, where they are few (`members.py`)."""
    counted: int = 0
    """How many updates are in windows of so many."""
    last_output: int | None = None
    """The timestamp of it, where that has to be newer than the one before."""
    generation: int = 0
    """The contents of panes of versions with other windows are by other numbers."""
    gone: list[Gone] = []
    """What windows before have left, and is to be given up."""
    over: int = NEVER
    """Windows that end here or earlier take nothing in any more."""
    changed: dict[int, int] = {}
    """Panes with updates that are in no result of windows that have ended: by their begin, those
    that end after that."""
    early: dict[int, int] = {}
    """The same of windows that have not ended."""
    told_early: int | None = None
    """The log's time at which results of windows that had not ended came out last, in ms."""
    folded: list[int] = []
    """Windows that have a state of a fold, by their numbers, in order."""

    held: list[int] = []
    """Windows that have not ended and of which the condition was true when it was asked last, by
    their numbers, in order."""
    held_by: bytes = b""
    """Which condition that was."""
    told: list[int] = []
    """Windows of which it is kept what they told last, by their numbers, in order."""
    parts: list[int] = []
    """Those of them that have become parts of others, or end later than they told."""
    read_as: int = 0
    """The newest number under which updates were stored of a stream that they read; 0: unknown."""

    def give_up(self, panes: list[int]) -> None:
        """These are in no window any more, and never come again."""
        if self.gone and self.gone[-1].generation == self.generation:
            self.gone[-1].panes += panes
        elif panes:
            self.gone.append(Gone(self.generation, self.arguments, panes))

    def place(self, begin: int) -> int:
        """Where the pane that begins there is, or would be."""
        return bisect_left(self.panes, begin, key=lambda pane: pane.begin)

    def pane(self, begin: int) -> Pane | None:
        """The pane that begins there."""
        place = self.place(begin)
        if place < len(self.panes) and self.panes[place].begin == begin:
            return self.panes[place]
        return None


_encoder = msgspec.msgpack.Encoder()
_heads = msgspec.msgpack.Decoder(Head)
MEMBERS = msgspec.msgpack.Decoder(dict[str, Member])
"""Reads pages of them."""


def read_head(value: bytes) -> Head:
    """Read what is under the key."""
    return _heads.decode(value)


def write(value: Head) -> bytes:
    """Return it as it is kept."""
    return _encoder.encode(value)
