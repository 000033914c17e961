"""That a program is not run for a while: why and until when, as it is told and read again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_TEXT = re.compile(r"until (?P<until>\S+Z): (?P<program>.*) has ended (?P<why>\d+ process.*)")


@dataclass(frozen=True, slots=True)
class Suspension:
    """A program does not run for so many seconds; at 0 it is half-open: tried once more."""

    tenant: str
    program: str
    kind: str
    kills: int
    seconds: float
    until: float
    """The same as seconds since 1970."""

    @property
    def text(self) -> str:
        """Which program, why and until when, as reading() reads it."""
        until = datetime.fromtimestamp(self.until, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        some = "1 process" if self.kills == 1 else f"{self.kills} processes"
        return f"until {until}: {self.program} has ended {some}, the last one by {self.kind}"


@dataclass(frozen=True, slots=True)
class Told:
    """What the text of a suspension says."""

    until: datetime
    program: str
    why: str


def reading(text: str) -> Told | None:
    """Return what the text says; None if it is of no suspension, or not written so."""
    found = _TEXT.search(text)
    if found is None:
        return None
    try:
        until = datetime.fromisoformat(found["until"])
    except ValueError:
        return None
    return Told(until, found["program"], f"its code has ended {found['why']}")
