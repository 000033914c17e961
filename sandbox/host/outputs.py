"""What an output of a program has to look like, whatever its process says."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from sandbox.host.answers import MalformedAnswer
from sandbox.program import Program
from sandbox.text import normal_type, well_formed

MAX_OUTPUT_BYTES = 1_000_000
"""Of an output's JSON. Less than an update from outside may have, and with what it travels in
less than the broker takes. The runner decides it; here it is only looked at again."""

_NUMBER = r"-?[0-9]{1,25}(?:\.[0-9]{1,25})?(?:e[+-]?[0-9]{1,3})?"
_POINT = re.compile(f"{_NUMBER},{_NUMBER}")

Fits = Callable[[Any], bool]
Shape = Mapping[str, tuple[str | None, Fits]]
"""By the name of each channel, its unit and what its value must be."""


def shape_of(program: Program) -> Shape:
    """Return what every output of the program looks like."""
    function = program.dialect == "function"
    return {
        well_formed(each.name): (
            well_formed(each.unit) if function and each.unit is not None else None,
            _fits(normal_type(each.type)),
        )
        for each in program.channels
    }


def check_output(document: bytes, timestamp: int, shape: Shape) -> None:
    """Raise MalformedAnswer unless this is an output of that shape and time."""
    if len(document) > MAX_OUTPUT_BYTES:
        raise MalformedAnswer(f"an output of {len(document)} bytes")
    try:
        parsed = orjson.loads(document)
    except orjson.JSONDecodeError as error:
        raise MalformedAnswer("not JSON") from error
    if type(parsed) is not dict or len(parsed) != 2:
        raise MalformedAnswer("an output of another shape")
    channels, last_update = parsed.get("channels"), parsed.get("lastUpdate")
    if type(last_update) is not int or last_update != timestamp:
        raise MalformedAnswer("an output of another time")
    if type(channels) is not dict or len(channels) != len(shape):
        raise MalformedAnswer("not the program's channels")
    for name, (unit, fits) in shape.items():
        channel = channels.get(name)
        if type(channel) is not dict or not fits(channel.get("current-value")):
            raise MalformedAnswer("not the program's channels")
        if len(channel) != 1 and (len(channel) != 2 or channel.get("unit") != unit):
            raise MalformedAnswer("a channel of another shape")


def _is_number(value: Any) -> bool:
    return type(value) is float or type(value) is int


def _is_string(value: Any) -> bool:
    return type(value) is str


def _is_boolean(value: Any) -> bool:
    return value is True or value is False


def _is_point(value: Any) -> bool:
    return type(value) is str and _POINT.fullmatch(value) is not None


_SCALARS: Mapping[str, Fits] = {
    "number": _is_number,
    "string": _is_string,
    "boolean": _is_boolean,
    "geo_point": _is_point,
}


def _fits(kind: str) -> Fits:
    """Return what tells whether a value is of this type; no value is of an unknown one."""
    depth = 0
    while kind.startswith("array[") and kind.endswith("]"):
        kind = kind[6:-1]
        depth += 1
    fits = _SCALARS.get(kind, lambda _: False)
    for _ in range(depth):
        fits = _each(fits)
    return fits


def _each(fits: Fits) -> Fits:
    return lambda value: type(value) is list and all(map(fits, value))
