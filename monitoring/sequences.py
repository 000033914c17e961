"""Which calls belong together: the id that connects the steps of one piece of work.

An id holds within a process: one that travels with an update through all programs takes its
place here, and nothing else changes.
"""

from __future__ import annotations

import itertools
import os
from contextvars import ContextVar
from typing import Any
from zlib import crc32

AROUND: ContextVar[str] = ContextVar("monitoring_sequence", default="")
"""The sequence of the woven call that is under way here; empty: none is."""

MAX_LENGTH = 64
_numbers = itertools.count(1)


def fresh() -> str:
    """Return an id that nothing else has in this process."""
    return f"{os.getpid()}-{next(_numbers)}"


def found(argument: Any, path: tuple[str, ...]) -> str:
    """Return the id at a place within an argument; empty where there is none."""
    for each in path:
        try:
            argument = argument[int(each)] if each.isdigit() else _named(argument, each)
        except (LookupError, AttributeError, TypeError):
            return ""
    return f"{os.getpid()}:{str(argument)[:MAX_LENGTH]}"


def _named(value: Any, name: str) -> Any:
    return value[name] if isinstance(value, dict) else getattr(value, name)


def is_sampled(sequence: str, rate: float) -> bool:
    """Whether this part of all sequences has it: each step of it, wherever, says the same."""
    return rate >= 1 or crc32(sequence.encode()) < rate * 2**32
