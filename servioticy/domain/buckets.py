"""Buckets of time: a stretch of a stream's timestamps, and what stands in for an empty one.

Timestamps are integers in the device's own unit, and so is the width of a bucket. Buckets begin
at multiples of their width.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from servioticy.domain.model import Timestamp

Fill: TypeAlias = Literal["none", "null", "previous", "linear"]
"""What an empty bucket holds: it is left out; nothing; what the one before has; what lies on the
line from the one before to the one after."""

Number: TypeAlias = int | float
Values: TypeAlias = Mapping[str, Any]
"""What each function says of a bucket."""

_WIDTH = re.compile(r"([0-9]{1,19})(ms|s|m|h|d|w)?")
MILLISECONDS = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
UNITS = {"s": 1_000, "ms": 1}
"""The units that timestamps may be said to have, in milliseconds."""


class BadWidth(Exception):
    """It is not the width of a bucket; the message says why."""


class Bucket(NamedTuple):
    """The updates of one bucket: its number (its start by its width), and what is said of them."""

    number: int
    updates: int
    values: Values


def width(text: str, unit: str | None) -> int:
    """Return the width that a text such as `60` or `1h` names, in the stream's own unit.

    With a suffix somebody has to say what that unit is. Raises BadWidth.
    """
    found = _WIDTH.fullmatch(text)
    if found is None:
        raise BadWidth("bucket has to be a whole number, or one with ms, s, m, h, d or w")
    number = int(found[1])
    if found[2] is not None:
        if unit is None:
            raise BadWidth(
                f"{text} is a width only where the unit of the timestamps is known: "
                "say timestamps=s or timestamps=ms"
            )
        number, rest = divmod(number * MILLISECONDS[found[2]], UNITS[unit])
        if rest:
            raise BadWidth(f"{text} is no whole number of the stream's timestamps")
    if not 1 <= number < 2**63:
        raise BadWidth("bucket has to be 1 or more, and below 2^63")
    return number


def filled(
    buckets: Sequence[Bucket], first: int, last: int, names: Sequence[str], fill: Fill
) -> Iterator[Bucket]:
    """Yield the buckets from the first number to the last, with something in the empty ones."""
    if fill == "none":
        yield from buckets
        return
    before: Bucket | None = None
    number = first
    for bucket in (*buckets, None):
        end = last + 1 if bucket is None else bucket.number
        while number < end:
            yield Bucket(number, 0, _empty(number, before, bucket, names, fill))
            number += 1
        if bucket is not None:
            yield bucket
            before, number = bucket, bucket.number + 1


def _empty(
    number: int, before: Bucket | None, after: Bucket | None, names: Sequence[str], fill: Fill
) -> Values:
    if fill == "previous" and before is not None:
        return before.values
    if fill == "linear" and before is not None and after is not None:
        part = (number - before.number) / (after.number - before.number)
        return {n: _between(before.values[n], after.values[n], part) for n in names}
    return dict.fromkeys(names)


def _between(before: Number | None, after: Number | None, part: float) -> Number | None:
    """Return what lies on the line; without both ends there is none."""
    if before is None or after is None:
        return None
    return before * (1 - part) + after * part


def start(number: int, width: int) -> Timestamp:
    """Return the smallest timestamp of a bucket."""
    return number * width
