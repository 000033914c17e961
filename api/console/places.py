"""What the API says is wrong with a document, at its place in the text that is edited."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from api.console.editing import Edited, Pointer, line_and_column

_IN_CODE = re.compile(r": line ([0-9]{1,9}), column ([0-9]{1,9})")
SHOWN = 20
BEFORE, WIDEST = 30, 90
"""Characters of a line that are shown; so many of them before the place."""


class Problem(NamedTuple):
    """Something that is wrong, and where."""

    reason: str
    line: int
    column: int
    at: int
    """The same place as a number of characters from the beginning."""
    text: str
    """The line around it."""
    before: int
    """So many characters of that stand before the place."""


def problem(reason: str, text: str, at: int) -> Problem:
    """Return what is wrong at this character of a text."""
    at = min(max(at, 0), len(text))
    line, column = line_and_column(text, at)
    begin = at - column + 1
    end = text.find("\n", at)
    whole = text[begin : end if end >= 0 else len(text)]
    cut = max(0, column - 1 - BEFORE)
    return Problem(reason, line, column, at, whole[cut : cut + WIDEST], column - 1 - cut)


def problems(refused: Mapping[str, Any], edited: Edited, text: str) -> list[Problem]:
    """Return what the body of a 400 tells, each at its place."""
    several = refused.get("errors")
    told = several if isinstance(several, list) and several else [refused]
    return [_placed(each, edited, text) for each in told[:SHOWN]]


def _placed(told: Mapping[str, Any], edited: Edited, text: str) -> Problem:
    reason = str(told.get("detail") or told.get("message") or "it was refused")
    pointer = _pointer(str(told.get("pointer") or ""), edited)
    at = edited.places.get(pointer, 0)
    inside = _IN_CODE.search(reason)
    if inside is not None:
        at = _in_code(text, at, at in edited.raw, int(inside[1]), int(inside[2]))
    return problem(reason, text, at)


def _pointer(text: str, edited: Edited) -> Pointer:
    """Return the nearest value to that of a JSON pointer that stands in the text."""
    found: Pointer = ()
    for name in text.split("/")[1:]:
        step: str | int = name.replace("~1", "/").replace("~0", "~")
        if (*found, step) not in edited.places and str(step).isascii() and str(step).isdecimal():
            step = int(step) if len(str(step)) < 10 else step
        if (*found, step) not in edited.places:
            break
        found = (*found, step)
    return found


def _in_code(text: str, at: int, is_raw: bool, line: int, column: int) -> int:
    """Return the place of a line and column of code that begins at this value."""
    if not is_raw:
        return at + column  # in its line, behind the quote
    for _ in range(line):
        found = text.find("\n", at)
        if found < 0:
            break
        at = found + 1
    end = text.find("\n", at)
    return min(at + column - 1, end if end >= 0 else len(text))
