"""Who wants more of a partition's time than there is for it: what is told of that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Pressing(NamedTuple):
    """A tenant that is over its share, or has records put off."""

    tenant: int
    waiting: int
    """records put off"""
    over_seconds: float
    """of the partition's time, of which it has used so much too much"""


def foremost(everybody: Iterable[Pressing], most: int) -> list[Pressing]:
    """Return so many of them: those with most records put off, and then who is over by most."""
    ordered = sorted(everybody, key=lambda each: (-each.waiting, -each.over_seconds, each.tenant))
    return ordered[:most]
