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
    return "".join(block((value - low) / (high - low)) for value in shown)


def block(part: float) -> str:
    """Return the lowest block for 0, the highest for 1."""
    return BLOCKS[round(part * (len(BLOCKS) - 1))]
