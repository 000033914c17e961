"""Documents as they are edited: JSON in which code stands in lines of its own.

A string may stand between backticks, as many as its text needs, each in a line: then all between
is the text as it is, without escapes. What is written so and read again is the same document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FLAT = 72
"""So long may an object be that stands in one line."""
SHORT = 40
"""Code that is no longer stays in the line of its key."""
CODE = frozenset({"current-value", "pre-filter", "post-filter", "if", "fold", "when", "code"})
"""Whose values are code."""
DEEPEST = 200
PLACED = 12
"""So deep it is known where values stand: what is deeper stands where that does that it is in."""
MOST_BACKTICKS = 20
DIGITS = 20
"""Of whole numbers of 64 bits, sign and all; others are numbers as JavaScript has them."""
Pointer = tuple[str | int, ...]

_RAW = re.compile(r"[^\x00-\x08\x0b-\x1f\ud800-\udfff]*")
"""What can stand between backticks: a form sends other line ends as it likes."""
_SPACE = re.compile(r"[ \t\n]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_RUN = re.compile(r"`+")
_ENDS = [re.compile(rf"\n[ \t]*`{{{count}}}(?!`)") for count in range(MOST_BACKTICKS + 1)]
"""By how many backticks a text stands between."""
_WORDS = {"true": True, "false": False, "null": None}
_WORD = re.compile(r"[a-z]+")


class NoDocument(Exception):
    """The text is none: what is wrong, and at which of its characters."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


@dataclass(slots=True)
class Edited:
    """A document, and where in the text each of its values begins."""

    document: Any
    places: dict[Pointer, int] = field(default_factory=dict)
    raw: frozenset[int] = frozenset()
    """The places of those that stand between backticks: where their own text begins."""


def write(document: Mapping[str, Any]) -> str:
    """Return the text in which a document is edited."""
    parts: list[str] = []
    flat: dict[int, str] = {}
    _flatten(document, "", flat)
    _write(document, "", "", parts, flat)
    return "".join(parts) + "\n"


def read(text: str) -> Edited:
    """Return the document of a text, with either kind of line ends. Raises NoDocument."""
    return _Reading(unix(text)).read()


def unix(text: str) -> str:
    """Return the text with line ends of one character; forms send two."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def line_and_column(text: str, at: int) -> tuple[int, int]:
    """Return the place of a character of a text for people, who count from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _stands_alone(key: str, value: str) -> bool:
    is_long = "\n" in value or (key in CODE and len(value) > SHORT)
    return is_long and _RAW.fullmatch(value) is not None and _backticks(value) < MOST_BACKTICKS


def _backticks(text: str) -> int:
    """Return how many stand next to each other at most."""
    return max(map(len, _RUN.findall(text)), default=0)


def _flatten(value: Any, key: str, flat: dict[int, str]) -> str | None:
    """Note of each object and array its text in one line, where it fits; return the value's."""
    if isinstance(value, str):
        return None if _stands_alone(key, value) else _flat(value)
    if not isinstance(value, dict | list):
        return _flat(value)
    if isinstance(value, dict):
        inner = [(f"{_flat(k)}: ", _flatten(each, k, flat)) for k, each in value.items()]
        ends = "{}"
    else:
        inner = [("", _flatten(each, "", flat)) for each in value]
        ends = "[]"
    whole = 2
    texts = []
    for before, each in inner:
        if each is None:
            return None
        whole += len(before) + len(each) + 2
        texts.append(before + each)
    if whole > FLAT + 2:
        return None
    flat[id(value)] = ends[0] + ", ".join(texts) + ends[1]
    return flat[id(value)]


def _write(value: Any, key: str, indent: str, parts: list[str], flat: Mapping[int, str]) -> None:
    if isinstance(value, str):
        parts.append(_raw(value) if _stands_alone(key, value) else _flat(value))
        return
    if not isinstance(value, dict | list):
        parts.append(_flat(value))
        return
    # The whole document is never one line: there is something to be put in between.
    if id(value) in flat and (indent or not value):
        parts.append(flat[id(value)])
        return
    deeper = f"{indent}  "
    begin, end = "{}" if isinstance(value, dict) else "[]"
    entries = value.items() if isinstance(value, dict) else (("", each) for each in value)
    for number, (name, each) in enumerate(entries):
        parts.append(f"{begin if not number else ','}\n{deeper}")
        if isinstance(value, dict):
            parts.append(f"{_flat(name)}: ")
        _write(each, name, deeper, parts, flat)
    parts.append(f"\n{indent}{end}")


def _raw(text: str) -> str:
    fence = "`" * (_backticks(text) + 1)
    return f"{fence}\n{text}\n{fence}"


def _flat(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class _Reading:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._places: dict[Pointer, int] = {}
        self._raw: set[int] = set()

    def read(self) -> Edited:
        document = self._value((), 0)
        self._skip()
        if self._at < len(self._text):
            raise NoDocument("nothing may follow the end of the document", self._at)
        return Edited(document, self._places, frozenset(self._raw))

    def _skip(self) -> str:
        """Return the next character that is no blank; empty at the end."""
        found = _SPACE.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _value(self, pointer: Pointer, depth: int) -> Any:
        first = self._skip()
        at = self._at
        if depth <= PLACED:
            self._places[pointer] = at
        if first in ("{", "["):
            if depth > DEEPEST:
                raise NoDocument("it is nested too deeply", self._at)
            return self._object(pointer, depth) if first == "{" else self._array(pointer, depth)
        if first == '"':
            return self._string()
        if first == "`":
            found = self._between_backticks()
            self._raw.add(at)
            return found
        if first == "-" or first.isdigit():
            return self._number()
        return self._word()

    def _object(self, pointer: Pointer, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._at += 1
        if self._skip() == "}":
            self._at += 1
            return found
        while True:
            if self._skip() != '"':
                raise NoDocument('a name in quotes ("..") is missing here', self._at)
            at = self._at
            name = self._string()
            if name in found:
                raise NoDocument(f'"{name:.60}" is here a second time', at)
            if self._skip() != ":":
                raise NoDocument("a colon is missing here", self._at)
            self._at += 1
            found[name] = self._value(_below(pointer, name), depth + 1)
            if self._ends("}"):
                return found

    def _array(self, pointer: Pointer, depth: int) -> list[Any]:
        found: list[Any] = []
        self._at += 1
        if self._skip() == "]":
            self._at += 1
            return found
        while True:
            found.append(self._value(_below(pointer, len(found)), depth + 1))
            if self._ends("]"):
                return found

    def _ends(self, end: str) -> bool:
        """Tell whether this was the last one; else there is a comma."""
        found = self._skip()
        if found not in (",", end) or not found:
            raise NoDocument(f'a comma or "{end}" is missing here', self._at)
        self._at += 1
        return found == end

    def _string(self) -> str:
        found = _STRING.match(self._text, self._at)
        if found is None:
            reason = "this text does not end in its line; longer ones stand between backticks"
            raise NoDocument(reason, self._at)
        try:
            text: str = json.loads(found[0])
        except ValueError as error:
            reason = "there is a backslash in this text that means nothing"
            raise NoDocument(reason, self._at) from error
        self._at = found.end()
        return text

    def _between_backticks(self) -> str:
        opening = _RUN.match(self._text, self._at)
        fence = opening[0] if opening else "`"
        begin = self._at + len(fence)
        if self._text[begin : begin + 1] != "\n":
            raise NoDocument("after these backticks the text begins in a new line", self._at)
        if len(fence) > MOST_BACKTICKS:
            raise NoDocument(f"these are more than {MOST_BACKTICKS} backticks", self._at)
        ending = _ENDS[len(fence)].search(self._text, begin)
        if ending is None:
            raise NoDocument(f"a line that ends this text ({fence}) is missing", self._at)
        self._at = ending.end()
        # Of a text that is empty, or ends at once, the two lines are one.
        return self._text[begin + 1 : max(begin + 1, ending.start())]

    def _number(self) -> int | float:
        found = _NUMBER.match(self._text, self._at)
        if found is None:
            raise NoDocument("this is no number", self._at)
        is_whole = not found[1] and not found[2] and len(found[0]) <= DIGITS
        value = int(found[0]) if is_whole else float(found[0])
        value = value if -(2**63) <= value < 2**64 or not is_whole else float(value)
        if value in (float("inf"), float("-inf")):
            raise NoDocument("this number is too large", self._at)
        self._at = found.end()
        return value

    def _word(self) -> bool | None:
        found = _WORD.match(self._text, self._at)
        if found is None or found[0] not in _WORDS:
            raise NoDocument("a value is missing here", self._at)
        self._at = found.end()
        return _WORDS[found[0]]


def _below(pointer: Pointer, step: str | int) -> Pointer:
    return (*pointer, step) if len(pointer) < PLACED else pointer
