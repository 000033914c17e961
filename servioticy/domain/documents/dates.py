"""Dates of ISO 8601, where a client may write one for milliseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

MAX_DATE = 40
"""Characters of a date; one with microseconds and an offset has 32."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NoDate(ValueError):
    """The text stands for no time; the message says why, and goes on after the field's name."""


def milliseconds(text: str, or_else: str) -> int:
    """Return what a date stands for. Raises NoDate where that is open.

    `or_else`: what else the field may be.
    """
    try:
        date = datetime.fromisoformat(text) if len(text) <= MAX_DATE else None
    except ValueError:
        date = None
    if date is None:
        raise NoDate(f"has to be {or_else}, or a date as 2026-11-24T09:30:00Z")
    if date.tzinfo is None:
        raise NoDate("is a date without a zone: add Z, or an offset as +01:00")
    value = (date - _EPOCH) // timedelta(milliseconds=1)
    if value < 0:
        raise NoDate("is before 1970")
    return value
