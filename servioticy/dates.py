"""Dates of ISO 8601, where a client may write one for milliseconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from servioticy.numbers import LARGEST, whole

MAX_DATE = 40
"""Characters of a date; one with microseconds and an offset has 32."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class NoDate(ValueError):
    """The text stands for no time; the message says why, and goes on after the field's name."""


def moment(text: str, least: int = 0, most: int = LARGEST) -> int:
    """Return the number that is written there, or what a date stands for. Raises NoDate."""
    number = whole(text, least, most)
    if number is not None:
        return number
    if whole(text[1:] if text.startswith("-") else text) is not None:
        raise NoDate(f"has to be from {least} to {most}")
    return milliseconds(text, "a whole number")


def moment_in_address(text: str, least: int = 0, most: int = LARGEST) -> int:
    """Return the same of text from behind a question mark.

    A plus sign that is not escaped arrives there as a blank; so a date of any zone does.
    """
    return moment(text[:11] + text[11:].replace(" ", "+"), least, most)


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
