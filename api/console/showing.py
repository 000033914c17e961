"""How values look on a page: filters of the templates."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from typing import Any

import orjson
from flask import Flask

from api.console.asking import path_of

_SECONDS_BELOW = 100_000_000_000
"""A timestamp below that is in seconds, else milliseconds, as elsewhere."""
_STEPS = ((60, "second", 1), (3_600, "minute", 60), (86_400, "hour", 3_600))
_JUST_NOW = 3.0
MOST_CHARACTERS = 200
"""Of a value that is shown; a channel may have a text of 64 KiB, or an array."""
_UNITS = {"Cel": "\u00b0C", "C": "\u00b0C", "F": "\u00b0F", "%RH": "%", "degC": "\u00b0C"}


def add_filters(app: Flask, base: str) -> None:
    """Give the templates what they show values by."""
    app.jinja_env.filters.update(
        moment=moment,
        iso=iso,
        ago=ago,
        age=age,
        value=value,
        text=text,
        plural=plural,
        size=size,
        amount=amount,
        price=price,
        unit=unit,
    )
    app.jinja_env.globals["page"] = lambda *names: f"{base}/console{path_of(*names)}"


def seconds(timestamp: float) -> float:
    """Return a timestamp in seconds since 1970."""
    return timestamp / 1000 if timestamp >= _SECONDS_BELOW else float(timestamp)


def iso(timestamp: float | None) -> str:
    """Return it for the attribute `datetime`; empty where it is no time of a calendar."""
    try:
        return datetime.fromtimestamp(seconds(timestamp or 0), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return ""


def moment(timestamp: float | None) -> str:
    """Return it for people, in UTC; a page shows the local time as soon as its script runs."""
    found = iso(timestamp)
    return found.replace("T", " ").replace("Z", " UTC") if found else str(timestamp)


def ago(timestamp: float | None) -> str:
    """Return how long ago that is, in words."""
    if timestamp is None:
        return "never"
    passed = time.time() - seconds(timestamp)
    if passed < -60:
        return "in the future"
    if passed < _JUST_NOW:
        return "just now"
    for below, name, size in _STEPS:
        if passed < below:
            return f"{plural(int(passed // size), name)} ago"
    return f"{plural(int(passed // 86_400), 'day')} ago"


def age(ticks: int, timestamp: float) -> str:
    """Return how much older something is than what has this timestamp, in words."""
    if not ticks:
        return "not older"
    passed = abs(ticks) / (1000 if timestamp >= _SECONDS_BELOW else 1)
    for below, size, name in (
        (1, 0.001, "ms"),
        (60, 1, "s"),
        (3_600, 60, "min"),
        (86_400, 3_600, "h"),
    ):
        if passed < below:
            return f"{'' if ticks > 0 else 'ahead by '}{passed / size:.3g} {name}"
    return f"{'' if ticks > 0 else 'ahead by '}{plural(int(passed // 86_400), 'day')}"


def plural(count: int, name: str) -> str:
    """Return a number with what it counts."""
    return f"{count:,} {name}{'' if count == 1 else 's'}"


def size(count: int) -> str:
    """Return a number of bytes for people."""
    for below, part, name in ((1e3, 1, "bytes"), (1e6, 1e3, "kB"), (1e9, 1e6, "MB")):
        if count < below:
            return f"{count / part:.3g} {name}"
    return f"{count / 1e9:,.3g} GB"


def amount(found: float) -> str:
    """Return a number with its thousands apart; parts where it has any."""
    return f"{found:,.3f}".rstrip("0").rstrip(".") if isinstance(found, float) else f"{found:,}"


def price(found: float) -> str:
    """Return an amount of money: two digits behind the point, or as many as tell something."""
    digits = 2 if found >= 1 or not found else 2 - math.floor(math.log10(found))
    return f"{found:,.{digits}f}"


def unit(found: str) -> str:
    """Return a unit as people write it; devices mostly have SenML's."""
    return _UNITS.get(found, found)


def value(found: Any) -> str:
    """Return the value of a channel for people."""
    if found is None:
        return "\u2013"
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, float):
        return f"{found:.6g}" if abs(found) < 1e15 else f"{found:g}"
    whole = str(found) if isinstance(found, int | str) else text(found)
    return whole if len(whole) <= MOST_CHARACTERS else f"{whole[:MOST_CHARACTERS]}\u2026"


def text(found: Any) -> str:
    """Return something as JSON."""
    return orjson.dumps(found).decode()
