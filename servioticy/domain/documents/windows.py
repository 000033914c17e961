"""The window of a composite stream, as its document has it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import gcd
from typing import Any, NamedTuple, cast, get_args

from servioticy.domain.documents.codes import (
    BAD_CODE,
    BAD_WINDOW,
    NO_CHOICE,
    REQUIRED,
    TOO_MUCH,
    WRONG_TYPE,
)
from servioticy.domain.documents.durations import MILLISECONDS, length, milliseconds
from servioticy.domain.documents.emitting import parse_emit
from servioticy.domain.documents.errors import Part
from servioticy.domain.windows import timezones
from servioticy.domain.windows.model import (
    DEFAULT_IDLE,
    Kind,
    Length,
    Revisions,
    Time,
    Uses,
    Window,
)

MAX_PANES = 1000
"""Of a window: so many are merged for one result."""
MAX_COUNT = 100_000
"""Updates of a window of kind count."""
MAX_BY = 4
"""Channels of one stream by whose values there are aggregates."""
DEFAULT_MAX = "24h"

MAX_REVISED = 100
"""Windows that an update is in, where they come out before their end, or after it again."""
_EVENTS = ("time", "delay", "idle")
_REVISED = ("emit", "lateness", "revisions")


class Keys(NamedTuple):
    """What a window of one kind has besides its type."""

    required: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return ("type", *self.required, *self.others)


KEYS: Mapping[str, Keys] = {
    "tumbling": Keys(("size",), ("offset", "timezone", *_EVENTS, *_REVISED)),
    "hopping": Keys(("size", "every"), ("offset", *_EVENTS, *_REVISED)),
    "sliding": Keys(("size",), _EVENTS),
    "session": Keys(("gap",), ("max", *_EVENTS, *_REVISED)),
    "count": Keys(("size",), ("every",)),
    "global": Keys((), ()),
}

_BY = re.compile(
    r"\.\s*+by\s*+\("
    r"(?:\s*+(?:'([^'\\\n]*+)'|\"([^\"\\\n]*+)\"|`([^`\\$]*+)`)\s*+\))?+"
)


def parse_window(stream: Part, content: Any, codes: Sequence[str]) -> Window:
    """Return the window that the stream has.

    `content` is what its document has under `window`, `codes` all code of the stream, by which it
    is known what of a window is asked for. Raises BadDocument.
    """
    part = stream.at("window", words="window")
    if not isinstance(content, dict):
        raise part.bad("has to be a JSON object", WRONG_TYPE)
    kind = _kind(content, part)
    _check_keys(content, kind, part)
    uses = _uses(codes, stream)
    if kind == "global":
        return Window(kind, uses=uses)
    if kind == "count":
        return _of_updates(content, part, uses)
    return _of_time(kind, content, part, uses)


def _kind(content: dict[str, Any], part: Part) -> Kind:
    if "type" not in content:
        raise part.bad(f"has to have a type: one of {_words(KEYS)}", REQUIRED)
    return cast(Kind, _choice(content["type"], KEYS, part.at("type", words="type")))


def _check_keys(content: dict[str, Any], kind: Kind, part: Part) -> None:
    keys = KEYS[kind]
    for key in content:
        if key not in keys.all:
            reason = f"a {kind} window has no {key[:40]!r}; it may have {', '.join(keys.all)}"
            raise part.at(key).bad(reason, BAD_WINDOW)
    for key in keys.required:
        if key not in content:
            raise part.bad(f"a {kind} window has to have {key}", REQUIRED)


def _of_updates(content: dict[str, Any], part: Part, uses: Uses) -> Window:
    size = _count(content["size"], part.at("size", words="size"))
    every = size
    if "every" in content:
        place = part.at("every", words="every")
        every = _count(content["every"], place)
        _check_steps(size, every, place)
    return Window("count", count=size, every_count=every, uses=uses)


def _of_time(kind: Kind, content: dict[str, Any], part: Part, uses: Uses) -> Window:
    def of(key: str, default: str, least: int = 1) -> int:
        return milliseconds(content.get(key, default), part.at(key, words=key), least)

    size = every = gap = most = None
    if kind == "session":
        gap = of("gap", "")
        most = of("max", DEFAULT_MAX)
        if most < gap:
            reason = f"a session is at most {most} ms long, so its gap cannot be longer"
            raise part.at("max" if "max" in content else "gap").bad(reason, BAD_WINDOW)
    else:
        size = length(content["size"], part.at("size", words="size"), kind == "tumbling")
    if size is not None and kind == "hopping":
        place = part.at("every", words="every")
        every = length(content["every"], place)
        _check_steps(about(size), about(every), place)
    time, delay, idle = _events(content, part)
    early = parse_emit(content, part)
    lateness = milliseconds(
        content.get("lateness", "0s"), part.at("lateness", words="lateness"), 0
    )
    if size is not None:
        _check_revised(size, every or size, early, lateness, part)
    return Window(
        kind,
        size=size,
        every=every,
        offset=_offset(content, size, part),
        gap=gap,
        max=most,
        timezone=_timezone(content, size, part),
        time=time,
        delay=delay,
        idle=idle,
        early=early,
        lateness=lateness,
        revisions=_revisions(content, kind, uses, part, early, lateness),
        uses=uses,
    )


def _events(content: dict[str, Any], part: Part) -> tuple[Time, int, int]:
    """Return by which time updates are cut, how late they may be, and who is waited for."""
    words = get_args(Time)
    time = cast(Time, _choice(content.get("time", "event"), words, part.at("time", words="time")))
    for key in ("delay", "idle", "lateness"):
        if time == "arrival" and key in content:
            reason = f"no update arrives late by the log's time, so there is no {key}"
            raise part.at(key).bad(reason, BAD_WINDOW)
    delay = milliseconds(content.get("delay", "0s"), part.at("delay", words="delay"), 0)
    idle = content.get("idle", f"{DEFAULT_IDLE}ms")
    return time, delay, milliseconds(idle, part.at("idle", words="idle"))


def _revisions(
    content: dict[str, Any], kind: Kind, uses: Uses, part: Part, early: int | None, lateness: int
) -> Revisions:
    """Return what comes of a window once more. Raises BadDocument where nothing does."""
    if "revisions" not in content:
        return "accumulate"
    place = part.at("revisions", words="revisions")
    choice = cast(Revisions, _choice(content["revisions"], get_args(Revisions), place))
    if early is None and not lateness:
        reason = "there are none, as a window comes out once: it has neither emit nor lateness"
        raise place.bad(reason, BAD_WINDOW)
    if choice == "discard" and kind == "hopping":
        reason = "an update is in several of them, and is still to be told by others: not discard"
        raise place.bad(reason, BAD_WINDOW)
    if choice == "discard" and kind == "session" and lateness:
        reason = "late updates merge sessions, whose results are taken back: not discard"
        raise place.bad(reason, BAD_WINDOW)
    if choice == "discard" and uses.by:
        raise place.bad("code beside discard does not ask by channels", BAD_WINDOW)
    return choice


def _check_revised(
    size: Length, every: Length, early: int | None, lateness: int, part: Part
) -> None:
    """Raise BadDocument where one update would make too many results, or too much be kept."""
    whole, step = about(size), about(every)
    if (early is not None or lateness) and whole > MAX_REVISED * step:
        key = "lateness" if early is None else "emit"
        reason = (
            f"an update would be in more than {MAX_REVISED} windows, each of which would come out "
            "again; take a longer every"
        )
        raise part.at(key).bad(reason, TOO_MUCH)
    if lateness and (whole + lateness) // gcd(whole, step) > MAX_PANES:
        reason = (
            "updates are kept in pieces as long as the greatest common divisor of size and every, "
            f"of which size and lateness together may have at most {MAX_PANES}"
        )
        raise part.at("lateness").bad(reason, TOO_MUCH)


def _offset(content: dict[str, Any], size: Length | None, part: Part) -> int:
    if size is None or "offset" not in content:
        return 0
    place = part.at("offset", words="offset")
    offset = milliseconds(content["offset"], place, 0)
    if offset >= about(size):
        raise place.bad("has to be shorter than the size", BAD_WINDOW)
    return offset


def _timezone(content: dict[str, Any], size: Length | None, part: Part) -> str | None:
    if size is None or "timezone" not in content:
        return None
    place = part.at("timezone", words="timezone")
    name = content["timezone"]
    if not isinstance(name, str):
        raise place.bad('has to be text such as "Europe/Berlin"', WRONG_TYPE)
    if name not in timezones.names():
        raise place.bad(f"there is no {name[:40]!r}, but for example Europe/Berlin", NO_CHOICE)
    if size.unit == "milliseconds":
        reason = "only sizes in days, weeks and months (d, w, mo) go by a timezone's clocks"
        raise place.bad(reason, BAD_WINDOW)
    return name


def _check_steps(size: int, every: int, part: Part) -> None:
    """Raise BadDocument where updates would be lost, or a result made of too much."""
    if every > size:
        reason = "has to be at most the size, as updates between two windows would be lost"
        raise part.bad(reason, BAD_WINDOW)
    if size // gcd(size, every) > MAX_PANES:
        reason = (
            "updates are kept in pieces as long as the greatest common divisor of size and every, "
            f"of which a window has at most {MAX_PANES}; take an every that divides the size"
        )
        raise part.bad(reason, TOO_MUCH)


def about(size: Length) -> int:
    """Return its milliseconds, where a day has 24 hours, and a month its least 28 days."""
    units = {"milliseconds": 1, "days": MILLISECONDS["d"], "months": 28 * MILLISECONDS["d"]}
    return size.amount * units[size.unit]


def _count(value: Any, part: Part) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise part.bad("has to be a whole number of updates", WRONG_TYPE)
    if not 1 <= value <= MAX_COUNT:
        raise part.bad(f"has to be from 1 to {MAX_COUNT} updates", TOO_MUCH)
    return value


def _choice(value: Any, choices: Iterable[str], part: Part) -> str:
    if not isinstance(value, str) or value not in choices:
        raise part.bad(f"has to be one of {_words(choices)}", NO_CHOICE)
    return value


def _words(choices: Iterable[str]) -> str:
    return ", ".join(map(repr, choices))


def _uses(codes: Sequence[str], stream: Part) -> Uses:
    """Return what the code asks of its windows: whatever it may ask, for it is not run."""
    by: dict[str, None] = {}
    for code in codes:
        for found in _BY.finditer(code):
            names = [each for each in found.groups() if each is not None]
            if not names:
                raise stream.bad(
                    "by has to name its channel as a text, such as .by('room'): it is known from "
                    "the code what is kept",
                    BAD_CODE,
                )
            by[names[0]] = None
    if len(by) > MAX_BY:
        raise stream.bad(f"more than {MAX_BY} channels are given to by", TOO_MUCH)
    return Uses(
        any("quantile" in each for each in codes),
        any("updates" in each for each in codes),
        tuple(by),
    )
