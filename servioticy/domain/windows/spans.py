"""Pieces of time."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """From `begin` on, and before `end`."""

    begin: int
    end: int
