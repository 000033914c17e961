"""The criteria of a search as clients send them, the library of the original included."""

from __future__ import annotations

import math
from typing import Any

from servioticy.dates import NoDate, milliseconds
from servioticy.domain.documents.codes import (
    NO_CHOICE,
    REQUIRED,
    TOO_MUCH,
    UNKNOWN_CHANNEL,
    WRONG_TYPE,
)
from servioticy.domain.documents.errors import WHOLE, BadDocument, Part
from servioticy.domain.model import Stream
from servioticy.domain.search.criteria import (
    AnyTerm,
    Condition,
    Criteria,
    NumberWithin,
    PlaceWithin,
    Span,
    terms,
)
from servioticy.domain.search.places import Place, around, between
from servioticy.domain.values import ANY

FIRST, LAST = -(2**63) + 1, 2**63 - 1
MAX_TERMS = 100
MAX_TEXT = 10_000
UNITS = {
    "km": 1_000.0,
    "kilometers": 1_000.0,
    "m": 1.0,
    "meters": 1.0,
    "cm": 0.01,
    "mm": 0.001,
    "mi": 1_609.344,
    "miles": 1_609.344,
    "yd": 0.9144,
    "ft": 0.3048,
    "in": 0.0254,
    "nmi": 1_852.0,
    "nm": 1_852.0,
}
"""Metres of each; the names are Elasticsearch's, which the original handed them to."""
SECONDS = range(100_000_000, 100_000_000_000)
"""What looks like a time in seconds: from 1973 to 5138."""
_PREFIX, _SUFFIX = "channels.", ".current-value"


def parse_criteria(document: dict[str, Any], stream: Stream) -> Criteria:
    """Understand a search of a stream; fields that are not known are ignored.

    Raises BadDocument with the place of what is wrong.
    """
    conditions: list[Condition] = []
    if _asked(document, "numericrange"):
        conditions.append(_number(document, stream))
    distance, box = _asked(document, "geodistance"), _asked(document, "geoboundingbox")
    if distance and box:
        reason = "geodistance and geoboundingbox exclude each other"
        raise WHOLE.at("geoboundingbox").bad(reason, NO_CHOICE)
    if distance or box:
        conditions.append(_distance(document, stream) if distance else _box(document, stream))
    if _asked(document, "match"):
        conditions.append(_match(document, stream))
    spans = _spans(document) if _asked(document, "timerange") else ((FIRST, LAST),)
    return Criteria(spans, tuple(conditions), _limit(document))


def _asked(document: dict[str, Any], name: str) -> bool:
    value = document.get(name, False)
    if value is None or value == "false":
        return False
    if value == "true":
        return True
    if not isinstance(value, bool):
        raise WHOLE.at(name).bad(f"{name} has to be true or false", WRONG_TYPE)
    return value


def _number_of(document: dict[str, Any], name: str) -> int | float | None:
    value = document.get(name)
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not _is_finite(value):
        raise WHOLE.at(name).bad(f"{name} has to be a number", WRONG_TYPE)
    return value


def _time_of(document: dict[str, Any], name: str) -> int | float | None:
    """A date is milliseconds, as in an update."""
    value = document.get(name)
    if not isinstance(value, str):
        return _number_of(document, name)
    try:
        return milliseconds(value, "a number")
    except NoDate as error:
        raise WHOLE.at(name).bad(f"{name} {error}", WRONG_TYPE) from None


def _is_finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _needed(document: dict[str, Any], name: str, low: float, high: float) -> float:
    value = _number_of(document, name)
    if value is None:
        raise BadDocument(f"The criteria have no {name}", "", REQUIRED)
    if not low <= value <= high:
        reason = f"{name} has to be between {low:g} and {high:g}"
        raise WHOLE.at(name).bad(reason, WRONG_TYPE)
    return float(value)


def _spans(document: dict[str, Any]) -> tuple[Span, ...]:
    """Return the times asked for.

    The original's library divides milliseconds by 1,000, whatever the stream's unit is. So an
    end that looks like seconds also means the same time in milliseconds; no other timestamp is
    ever rescaled.
    """
    low, high = _time_of(document, "rangefrom"), _time_of(document, "rangeto")
    first = FIRST if low is None else _held(math.ceil(low))
    last = LAST if high is None else _held(math.floor(high))
    spans = [(first, last)]
    if last in SECONDS and first < SECONDS.stop:
        spans.append((max(first * 1_000, SECONDS.stop), last * 1_000 + 999))
    return tuple(each for each in spans if each[0] <= each[1])


def _held(value: int) -> int:
    return max(FIRST, min(LAST, value))


def _number(document: dict[str, Any], stream: Stream) -> NumberWithin:
    channel = _channel(document, "numericrangefield", stream, ("number", "array[number]"))
    low, high = _number_of(document, "rangefrom"), _number_of(document, "rangeto")
    return NumberWithin(channel, low, high)


def _distance(document: dict[str, Any], stream: Stream) -> PlaceWithin:
    _check_location("geodistance", stream)
    middle = Place(
        _needed(document, "pointlat", -90, 90), _needed(document, "pointlon", -180, 180)
    )
    value = _needed(document, "geodistancevalue", 0, 1e12)
    unit = document.get("geodistanceunit")
    unit = "km" if unit is None else unit
    if not isinstance(unit, str) or unit.lower() not in UNITS:
        reason = f"geodistanceunit has to be one of {', '.join(UNITS)}"
        raise WHOLE.at("geodistanceunit").bad(reason, NO_CHOICE)
    radius = value * UNITS[unit.lower()]
    return PlaceWithin("location", around(middle, radius), middle, radius)


def _box(document: dict[str, Any], stream: Stream) -> PlaceWithin:
    """Return the box of two corners; clients name them in any order, and beyond the poles."""
    _check_location("geoboundingbox", stream)
    corners = [
        Place(
            _needed(document, f"geobox{corner}lat", -1_000, 1_000),
            _needed(document, f"geobox{corner}lon", -1_000, 1_000),
        )
        for corner in ("upperleft", "bottomright")
    ]
    return PlaceWithin("location", between(*corners))


def _check_location(name: str, stream: Stream) -> None:
    """Places are those of the channel of that name, as its type is always geo_point."""
    if stream.channel("location") is None:
        reason = "The stream has no channel location"
        raise WHOLE.at(name).bad(reason, UNKNOWN_CHANNEL)


def _match(document: dict[str, Any], stream: Stream) -> AnyTerm:
    channel = _channel(document, "matchfield", stream, ("string", "array[string]"))
    # The original's library says "string", its server knew "matchstring" only.
    name = next((each for each in ("matchstring", "string") if each in document), None)
    if name is None:
        raise BadDocument("The criteria have no matchstring", "", REQUIRED)
    text = document[name]
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        reason = f"{name} has to be text of at most {MAX_TEXT} characters"
        raise WHOLE.at(name).bad(reason, WRONG_TYPE)
    wanted = terms(text)
    if not wanted:
        raise WHOLE.at(name).bad(f"{name} has no word in it", REQUIRED)
    if len(wanted) > MAX_TERMS:
        raise WHOLE.at(name).bad(f"{name} has more than {MAX_TERMS} words", TOO_MUCH)
    return AnyTerm(channel, frozenset(wanted))


def _channel(document: dict[str, Any], name: str, stream: Stream, types: tuple[str, ...]) -> str:
    """Return the channel that a field such as `channels.x.current-value` names."""
    place: Part = WHOLE.at(name)
    value = document.get(name)
    if value is None:
        raise BadDocument(f"The criteria have no {name}", "", REQUIRED)
    if not isinstance(value, str) or not (
        value.startswith(_PREFIX) and value.endswith(_SUFFIX) and len(value) < 1_000
    ):
        reason = f"{name} has to be of the form channels.NAME.current-value"
        raise place.bad(reason, WRONG_TYPE)
    channel = stream.channel(value[len(_PREFIX) : -len(_SUFFIX)])
    if channel is None:
        reason = f"The Service Object Stream does not have the channel of {value:.200}"
        raise place.bad(reason, UNKNOWN_CHANNEL)
    if channel.type not in (*types, ANY):
        reason = f"The channel {channel.name} is {channel.type}, not {types[0]}"
        raise place.bad(reason, WRONG_TYPE)
    return channel.name


def _limit(document: dict[str, Any]) -> int | None:
    if not _asked(document, "limit"):
        return None
    value = document.get("limitcount")
    if value is None:
        raise BadDocument("The criteria have no limitcount", "", REQUIRED)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise WHOLE.at("limitcount").bad("limitcount has to be 1 or more", WRONG_TYPE)
    return value
