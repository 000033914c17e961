"""Values of channels as aggregates keep and tell them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.msgpack import Ext

MAX_BYTES = 1024
"""Of a value that is kept, as JSON."""
_WHOLE = 2**53
"""Below it each whole number is a float."""
_LARGE, _NESTED = 1, 2
"""Kinds of packed values that MessagePack has not: whole numbers beyond 64 bits, and JSON."""


def short(value: Any) -> Any:
    """Return the value, or None in the place of one that is too long to be kept.

    It is none of the numbers that scripts know: a whole one is larger.
    """
    if isinstance(value, int):
        return value if isinstance(value, bool) else None
    if isinstance(value, str) and len(value) * 6 + 2 <= MAX_BYTES:
        return value
    return value if len(msgspec.json.encode(value)) <= MAX_BYTES else None


def plain(number: float) -> float:
    """Return the number in the one form that it has here: equal ones are written alike.

    Whole numbers are without a point, unless they are so large that floats have gaps.
    """
    whole = int(number)
    if whole != number:
        return number
    if -_WHOLE < whole < _WHOLE:
        return whole
    rounded = float(whole)
    return rounded if rounded == whole else whole


def packed(value: Any) -> Any:
    """Return what MessagePack takes."""
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return Ext(_LARGE, as_bytes(value))
    if isinstance(value, list | dict):
        return Ext(_NESTED, msgspec.json.encode(value))
    return value


def unpacked(code: int, content: memoryview) -> Any:
    """Return the value that was packed so."""
    return as_int(bytes(content)) if code == _LARGE else msgspec.json.decode(content)


def as_bytes(number: int) -> bytes:
    """Return a whole number of any size as bytes, no more than it needs."""
    return number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)


def as_int(content: bytes) -> int:
    """Return the number that these bytes are."""
    return int.from_bytes(content, "big", signed=True)
