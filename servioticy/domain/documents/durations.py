"""Durations as documents write them: a whole number and a unit."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from servioticy.domain.documents.codes import BAD_DURATION, WRONG_TYPE
from servioticy.domain.documents.errors import Part
from servioticy.domain.windows.model import Length

MILLISECONDS = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
}
MONTH = "mo"
MAX_DAYS = 366
MAX_MONTHS = 12
MAX_MILLISECONDS = MAX_DAYS * MILLISECONDS["d"]
FORM = re.compile(r"([0-9]{1,11})(ms|s|mo|m|h|d|w)")
EXAMPLES = '"500ms", "30s", "20m", "2h", "1d", "1w"'


class _Written(NamedTuple):
    amount: int
    unit: str


def length(value: Any, part: Part, months: bool = False) -> Length:
    """Return the size that is written so: in days where days or weeks are meant.

    Raises BadDocument for the part. `months`: whether it may be in months.
    """
    written = _read(value, part, months)
    if written.unit == MONTH:
        if not 1 <= written.amount <= MAX_MONTHS:
            raise part.bad(f"has to be from 1mo to {MAX_MONTHS}mo", BAD_DURATION)
        return Length(written.amount, "months")
    found = _bounded(written, part, 1)
    if written.unit in ("d", "w"):
        return Length(found // MILLISECONDS["d"], "days")
    return Length(found)


def milliseconds(value: Any, part: Part, least: int = 1) -> int:
    """Return a duration in ms, `least` at least. Raises BadDocument for the part."""
    return _bounded(_read(value, part, months=False), part, least)


def _read(value: Any, part: Part, months: bool) -> _Written:
    examples = f'{EXAMPLES} or "1{MONTH}"' if months else EXAMPLES
    if not isinstance(value, str):
        raise part.bad(f"has to be text such as {examples}", WRONG_TYPE)
    found = FORM.fullmatch(value)
    if found is None or (found[2] == MONTH and not months):
        raise part.bad(f"has to be a whole number and a unit such as {examples}", BAD_DURATION)
    return _Written(int(found[1]), found[2])


def _bounded(written: _Written, part: Part, least: int) -> int:
    found = written.amount * MILLISECONDS[written.unit]
    if not least <= found <= MAX_MILLISECONDS:
        raise part.bad(f"has to be from {least}ms to {MAX_DAYS}d", BAD_DURATION)
    return found
