"""Whether the log still has all that is stored.

The log is kept by the broker, progress by Postgres. A power cut, a topic made anew, a disk
that came back from a backup: then progress is a place in a log that is no more. To go on
would skip, without a word, updates that were acknowledged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from servioticy.errors import ServioticyError

log = logging.getLogger("servioticy.log")

REMEDY = (
    "if a backup or replica of the log is to be had, put that in place; else "
    "`servioticy doctor --accept-log-loss` goes on with the log as it is"
)


class LogLost(ServioticyError):
    """Stored progress and the log do not belong together; a person has to decide."""


class Bounds(NamedTuple):
    """A partition of the log: its first record, and what its next one will be."""

    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Present:
    """The log as the broker has it."""

    topic: str
    topic_id: str
    bounds: Mapping[int, Bounds]


@dataclass(frozen=True, slots=True)
class Stored:
    """What Postgres says of the log; no id before the first start."""

    topic: str | None
    topic_id: str | None
    progress: Mapping[int, int]


class Loss(NamedTuple):
    """A partition in which the two do not meet, and where it could go on."""

    partition: int
    stored: int
    bounds: Bounds
    another_topic: bool

    @property
    def next_offset(self) -> int:
        """From where nothing of the present log is skipped, and nothing of it done twice."""
        if self.another_topic or self.stored < self.bounds.first:
            return self.bounds.first
        return min(self.stored, self.bounds.end)

    def __str__(self) -> str:
        first, end = self.bounds
        here = f"partition {self.partition} is stored up to offset {self.stored}"
        if self.another_topic:
            return f"{here} of a topic that is gone; the present one has {first} to {end}"
        if self.stored > end:
            return f"{here}, the log ends at {end}: offsets {end} to {self.stored - 1} are lost"
        return f"{here}, the log begins at {first}: offsets {self.stored} to {first - 1} are lost"


class LogIdentity(Protocol):
    """What is kept of the log beside progress."""

    def stored(self) -> Stored:
        """Return which log it is, and how far it is stored."""

    def note(self, topic: str, topic_id: str) -> None:
        """This is the log, unless it is known which one it is."""

    def accept(self, topic: str, topic_id: str, losses: list[Loss]) -> None:
        """Go on with this log, and keep what was lost."""


def losses(stored: Stored, present: Present) -> list[Loss]:
    """Return the partitions in which the log does not have what is stored, or what comes next."""
    another = stored.topic_id not in (None, present.topic_id)
    found = []
    for partition, progress in sorted(stored.progress.items()):
        bounds = present.bounds.get(partition, Bounds(0, 0))
        if (another and progress > 0) or not bounds.first <= progress <= bounds.end:
            found.append(Loss(partition, progress, bounds, another))
    return found


Look: TypeAlias = Callable[[], Present]
"""Asks the broker. Progress is asked first: it may grow while we look, and the log with it."""


def check(identity: LogIdentity, look: Look) -> None:
    """Raises LogLost where the log is not the one that is stored, or not all of it.

    The first time it is noted which log it is.
    """
    stored = identity.stored()
    present = look()
    found = losses(stored, present)
    if found:
        raise LogLost(explained(stored, present, found))
    if stored.topic_id is None:
        identity.note(present.topic, present.topic_id)
    elif stored.topic_id != present.topic_id:  # nothing is stored of the other one
        identity.accept(present.topic, present.topic_id, [])


def accept(identity: LogIdentity, look: Look) -> list[Loss]:
    """Go on with the log as it is; what that skips is told and kept (table log_losses)."""
    stored = identity.stored()
    present = look()
    found = losses(stored, present)
    identity.accept(present.topic, present.topic_id, found)
    for each in found:
        log.warning(
            "log_loss_accepted",
            extra={
                "partition": each.partition,
                "stored": each.stored,
                "log": list(each.bounds),
                "goes_on_at": each.next_offset,
                "topic_id": present.topic_id,
            },
        )
    return found


def explained(stored: Stored, present: Present, found: list[Loss]) -> str:
    """Return what is wrong, and what to do."""
    topics = f"topic {present.topic} has id {present.topic_id}"
    if stored.topic_id not in (None, present.topic_id):
        topics += f", what is stored came from {stored.topic} with id {stored.topic_id}"
    return (
        "the log does not have what is stored; nothing is read, so that nothing is skipped: "
        f"{'; '.join(map(str, found))} ({topics}). What to do: {REMEDY}"
    )
