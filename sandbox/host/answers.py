"""What a worker says beside what its trees made, believed only as far as it fits the question.

A script may have taken its worker over. What it then says is about its own tenant, so that
it may lie about values; but not about what the platform relies on. What does not fit is
MalformedAnswer. `grown` and `outputs` look at what trees made.
"""

from __future__ import annotations

from typing import Any

import orjson

MAX_MESSAGE = 1000
"""Characters of a fault's message; the runner's are shorter."""

PROBLEM_KINDS = ("syntax", "policy")


class MalformedAnswer(Exception):
    """A worker's answer does not fit the question."""


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
