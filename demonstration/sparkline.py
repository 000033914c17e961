"""A series of numbers as a line of block characters."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int) -> str:
    """Return the last `width` values, the lowest of them as the lowest block."""
    shown = values[-width:] if width > 0 else []
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    if low == high:
        return BLOCKS[0] * len(shown)
    steps = len(BLOCKS) - 1
    return "".join(BLOCKS[round((value - low) / (high - low) * steps)] for value in shown)
