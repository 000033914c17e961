"""What a worker says, believed only as far as it fits the question.

A script may have taken its worker over. What it then says is about its own tenant, so that
it may lie about values; but not about what the platform relies on: the shape and size of an
update, its timestamp, and which steps can have which outcome. Anything else is MalformedAnswer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from sandbox.program import Assignment, Call, Fault, Outcome, Program, Value
from sandbox.text import normal_type, well_formed

MAX_OUTPUT_BYTES = 1_000_000
"""Of an output's JSON. Less than an update from outside may have, and with what it travels in
less than the broker takes. The runner decides it; here it is only looked at again."""

MAX_MESSAGE = 1000
"""Characters of a fault's message; the runner's are shorter."""

MAX_TICKS = 60_000
"""Milliseconds of a call; more is a clock that was set."""

STALE = frozenset({"stale"})
RAN = frozenset({"filtered", "script-error", "error", "syntax"})
PROBLEM_KINDS = ("syntax", "policy")

_NUMBER = r"-?[0-9]{1,25}(?:\.[0-9]{1,25})?(?:e[+-]?[0-9]{1,3})?"
_POINT = re.compile(f"{_NUMBER},{_NUMBER}")

Fits = Callable[[Any], bool]
Shape = Mapping[str, tuple[str | None, Fits]]
"""By the name of each channel, its unit and what its value must be."""


class MalformedAnswer(Exception):
    """A worker's answer does not fit the question."""


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


def decode_ticks(line: bytes, calls: Sequence[Call]) -> list[int]:
    """Return the milliseconds of each call. Raises MalformedAnswer."""
    texts = line.split(b",", len(calls))
    if len(texts) != len(calls):
        raise MalformedAnswer(f"not {len(calls)} times")
    return [_tick(each) for each in texts]


def decode_answer(
    answer: bytes, calls: Sequence[Call], shapes: Sequence[Shape]
) -> list[list[Outcome]]:
    """Return one outcome per step of each call; `shapes` are those of the calls' programs.

    Raises MalformedAnswer.
    """
    found = answer.count(b"\n") + 1
    if found != sum(len(call.steps) for call in calls):
        raise MalformedAnswer(f"{found} lines")
    lines = answer.split(b"\n")
    cut: list[list[Outcome]] = []
    at = 0
    for call, shape in zip(calls, shapes, strict=True):
        cut.append(_outcomes(call, lines[at : at + len(call.steps)], shape))
        at += len(call.steps)
    return cut


def decode_problems(answer: bytes, programs: int) -> list[list[tuple[str, str]]]:
    """Return kind and text of each program's problems. Raises MalformedAnswer."""
    found = _parsed(answer)
    if not isinstance(found, list) or len(found) != programs:
        raise MalformedAnswer(f"not {programs} answers")
    return [_problems(each) for each in found]


def decode_layers(answer: bytes) -> dict[str, str]:
    """Return what protects a worker. Raises MalformedAnswer."""
    found = _parsed(answer)
    if not isinstance(found, dict):
        raise MalformedAnswer("no layers")
    return {clipped(name): clipped(_text(lack)) for name, lack in found.items()}


def clipped(text: str) -> str:
    """Return a worker's text, cut to a length that may be kept."""
    return text if len(text) <= MAX_MESSAGE else text[:MAX_MESSAGE] + "..."


def _outcomes(call: Call, lines: Sequence[bytes], shape: Shape) -> list[Outcome]:
    """Return a call's outcomes: what each can be follows from its step, as in the runner."""
    outcomes: list[Outcome] = []
    last = call.previous_timestamp
    for step, line in zip(call.steps, lines, strict=True):
        if isinstance(step, Assignment):
            if line != b"N":
                raise MalformedAnswer("an outcome of what was put from outside")
            if last is None or step.timestamp >= last:
                last = step.timestamp
            outcomes.append(None)
        elif last is not None and step.timestamp <= last:
            outcomes.append(_fault(line, STALE))
        elif line[:1] == b"V":
            last = step.floor if last is None or last < step.floor else last
            outcomes.append(_value(line, last, shape))
        else:
            outcomes.append(_fault(line, RAN))
    return outcomes


def _value(line: bytes, timestamp: int, shape: Shape) -> Value:
    head = b"V%d " % timestamp
    if not line.startswith(head):
        raise MalformedAnswer("not the timestamp that follows from the inputs")
    document = line[len(head) :]
    if len(document) > MAX_OUTPUT_BYTES:
        raise MalformedAnswer(f"an output of {len(document)} bytes")
    parsed = _parsed(document)
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
    return Value(timestamp, document)


def _fault(line: bytes, kinds: frozenset[str]) -> Fault:
    head, _, message = line.partition(b" ")
    kind = head[1:].decode("ascii", "replace")
    if head[:1] != b"F" or kind not in kinds:
        raise MalformedAnswer("an outcome that cannot be")
    return Fault(kind, clipped(_text(_parsed(message))))


def _tick(text: bytes) -> int:
    if len(text) > 20 or not text.removeprefix(b"-").isdigit():
        raise MalformedAnswer("no milliseconds")
    return max(0, min(int(text), MAX_TICKS))


def _problems(found: Any) -> list[tuple[str, str]]:
    if not isinstance(found, list):
        raise MalformedAnswer("no problems")
    problems: list[tuple[str, str]] = []
    for each in found:
        if not isinstance(each, list) or len(each) != 2 or each[0] not in PROBLEM_KINDS:
            raise MalformedAnswer("no problem")
        problems.append((each[0], clipped(_text(each[1]))))
    return problems


def _parsed(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise MalformedAnswer("not JSON") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise MalformedAnswer("no text")
    return value


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
