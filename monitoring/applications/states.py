"""How an application is: what its monitor has written down, and whether that one still lives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from monitoring.applications import repository
from monitoring.applications.repository import MAX_RECORD, Place, Registered
from monitoring.state import birth

Step = Literal["starting", "running", "ended", "failed", "stopped"]


class Written(msgspec.Struct, frozen=True):
    """What a monitor writes down of the application that it watches."""

    turn: int
    step: Step
    monitor: int
    """its process"""
    monitor_birth: str
    process: int
    """the application's; 0 where it has none"""
    since: int
    """ms since 1970: of the step"""
    starts: int
    """in this turn"""
    why: str
    """how it has ended, or why it was not begun"""
    stored: int
    """measurements, since the monitor has begun"""
    lost: int
    """lines that were none, and measurements that somebody was not told of"""


class State(msgspec.Struct, frozen=True, rename="camel"):
    """All that is told of an application."""

    id: str
    name: str
    engine: str
    version: int
    registered_at: int
    state: str
    """waiting, starting, running, stopping, stopped, ended, failed or lost"""
    why: str
    since: int
    process: int
    starts: int
    stored: int
    lost: int


def write(place: Place, written: Written) -> None:
    """Write it down for `of`."""
    partial = place.state.with_suffix(f".{os.getpid()}")
    partial.write_bytes(msgspec.json.encode(written))
    partial.replace(place.state)


def written(place: Place) -> Written | None:
    """Return what was written last; None where it is nothing."""
    try:
        return msgspec.json.decode(place.state.read_bytes()[:MAX_RECORD], type=Written)
    except (OSError, msgspec.DecodeError):
        return None


def of_all(data: Path) -> list[State]:
    """Return how each application is, by name."""
    return [of(data, each) for each in repository.all_registered(data)]


def of(data: Path, found: Registered) -> State:
    """Return how it is."""
    last = written(Place(data, found.name))
    state, why = _state(found, last)
    return State(
        *(found.id, found.name, found.engine, found.version, found.registered_at, state, why),
        last.since if last else found.registered_at,
        last.process if last and state in ("running", "stopping") else 0,
        *((last.starts, last.stored, last.lost) if last else (0, 0, 0)),
    )


def is_over(found: Registered, last: Written | None) -> bool:
    """Whether it has done, by itself, what it was begun for."""
    return last is not None and last.turn == found.turn and last.step == "ended"


def _state(found: Registered, last: Written | None) -> tuple[str, str]:
    lives = last is not None and birth(last.monitor) == last.monitor_birth != ""
    under_way = last is not None and last.step in ("starting", "running")
    if found.wish == "stopped":
        return ("stopping" if lives and under_way else "stopped"), ""
    if last is None or last.turn != found.turn:
        if lives and under_way:
            return "stopping", "what was deployed before is stopped first"
        return "waiting", "it is begun where `servioticy up` runs on this data folder"
    if under_way and not lives:
        why = "its monitor was killed, and it with it; both are begun again where a platform runs"
        return "lost", why
    return last.step, last.why
