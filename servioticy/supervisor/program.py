"""What the supervisor runs, and what it tells about it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

EventKind = Literal["starting", "ready", "exited", "unresponsive", "stopping", "stopped"]


@dataclass(frozen=True, slots=True)
class Program:
    """A program to keep running.

    `ready` is asked again and again from the supervisor's only thread, so it must answer
    within a second or so; an OSError counts as "not yet". `environment` is added to ours.
    `before` is called before each start and may raise Unavailable. With `together` the next
    program is started without waiting for this one. `descriptors` are files of ours that it
    is handed open.
    """

    name: str
    command: list[str]
    environment: Mapping[str, str]
    ready: Callable[[], bool] = lambda: True
    stop_signal: signal.Signals = signal.SIGTERM
    ready_seconds: float = 60.0
    stop_seconds: float = 10.0
    before: Callable[[], None] = lambda: None
    together: bool = False
    descriptors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a program."""

    program: str
    kind: EventKind
    detail: str = ""
    pid: int = 0
