"""How long updates are kept: by their own time, and of each stream the last one for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servioticy.domain.documents.codes import BAD_WINDOW, WRONG_TYPE
from servioticy.domain.documents.durations import milliseconds
from servioticy.domain.documents.errors import WHOLE, Part
from servioticy.domain.model import Timestamp
from servioticy.domain.timing import MILLISECONDS_FROM

KEY = "dataTTL"
FOR_EVER = -1
MAX_SECONDS = 3_153_600_000
"""A hundred years."""

SECONDS_FROM = 100_000_000
"""Smaller timestamps (before March 1973) count something else than time, and do not get old."""

FIRST: Timestamp = -(2**63)


def kept_from(newest: Timestamp | None, seconds: int | None, now_seconds: float) -> Timestamp:
    """Return the timestamp at which the history of a stream begins.

    Its unit is that of the stream's newest update; `seconds` is how long updates are kept, None
    or FOR_EVER without end. SQL has the same rule (`kept_from` in schema.sql).
    """
    if newest is None or seconds is None or seconds < 0 or newest < SECONDS_FROM:
        return FIRST
    unit = 1000 if newest >= MILLISECONDS_FROM else 1
    return round(now_seconds * unit) - seconds * unit


def kept_seconds(document: Mapping[str, Any]) -> dict[str, int | None]:
    """Return what an accepted document says of each of its streams; None: nothing.

    A stream's own word comes before that of the whole.
    """
    streams = document.get("streams")
    whole = document.get(KEY)
    found = streams.items() if isinstance(streams, dict) else ()
    own = {
        name: content.get(KEY) if isinstance(content, dict) else None for name, content in found
    }
    return {name: _usable(whole if each is None else each) for name, each in own.items()}


def check_retention(document: Mapping[str, Any]) -> None:
    """Check what a new document says, which was understood without that.

    Raises BadDocument with the place.
    """
    _check(document.get(KEY), WHOLE.at(KEY))
    for name, content in document["streams"].items():
        place = WHOLE.at("streams", name, KEY, words=f"stream {name}")
        _check(content.get(KEY), place)
    for name, seconds in kept_seconds(document).items():
        if seconds is not None and seconds != FOR_EVER:
            _check_lateness(name, document["streams"][name], seconds)


def _check_lateness(name: str, content: Mapping[str, Any], seconds: int) -> None:
    """Raise BadDocument where windows stay open for longer than their results are kept."""
    window = content.get("window")
    lateness = window.get("lateness", "0s") if isinstance(window, dict) else "0s"
    place = WHOLE.at("streams", name, "window", "lateness", words=f"stream {name}: lateness")
    if milliseconds(lateness, place, 0) > seconds * 1000:
        reason = f"is longer than results are kept, {seconds} s by {KEY}"
        raise place.bad(reason, BAD_WINDOW)


def _check(seconds: Any, place: Part) -> None:
    if seconds is not None and not _is_usable(seconds):
        reason = (
            f"{KEY} has to be a whole number of seconds from 1 to {MAX_SECONDS}, or {FOR_EVER}"
        )
        raise place.bad(f"{reason}: for ever", WRONG_TYPE)


def _usable(seconds: Any) -> int | None:
    """What earlier releases took and nobody can act upon says nothing."""
    return seconds if _is_usable(seconds) else None


def _is_usable(seconds: Any) -> bool:
    is_whole = isinstance(seconds, int) and not isinstance(seconds, bool)
    return is_whole and (seconds == FOR_EVER or 1 <= seconds <= MAX_SECONDS)
