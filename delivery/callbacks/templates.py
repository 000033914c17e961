"""The original's templates of HTTP callbacks: aliases, then `{$.path}` out of the update.

What an update says is data. It is put into an address as one segment or value, into a header
without line ends, and into a body as the inside of a JSON text; it can be no more than that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import orjson

from servioticy.domain.references import BadReference, plain

_PATH = re.compile(r"\{\$((?:\.|\[)[^{}]*)\}")
MAX_TEXT = 65_536
MAX_PATHS = 1_000
"""So many places of a text may be filled from the update."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

Escape = Callable[[str], str]


class TemplateTooLong(ValueError):
    """What the template makes of the update is too much for a request."""


def for_address(text: str) -> str:
    """Write a value so that it stays one part of an address."""
    return quote(text, safe="")


def for_header(text: str) -> str:
    """Write a value so that it stays one header."""
    return _CONTROL.sub(" ", text)


def for_body(text: str) -> str:
    """Write a value as it stands between the quotes of a JSON text."""
    return orjson.dumps(text).decode()[1:-1]


def as_it_is(text: str) -> str:
    """Write a value that stays among texts."""
    return text


def filled(text: str, aliases: Mapping[str, str], update: Any, escape: Escape) -> str:
    """Return the text with all aliases and paths replaced. Raises TemplateTooLong.

    A path that leads nowhere is replaced by nothing.
    """
    for name, meaning in aliases.items():
        if name:
            # Before it is made: it may be a thousand times as long.
            _check(len(text) + text.count(name) * (len(meaning) - len(name)))
            text = text.replace(name, meaning)
    return "".join(_parts(text, update, escape))


def filled_json(content: Any, update: Any) -> Any:
    """Return JSON in which each text is filled; one that is a path and nothing else becomes what
    the path leads to, of whatever type. Raises TemplateTooLong."""
    if isinstance(content, str):
        path = _PATH.fullmatch(content)
        return _found(path[1], update, None) if path else filled(content, {}, update, as_it_is)
    if isinstance(content, list):
        return [filled_json(each, update) for each in content]
    if isinstance(content, dict):
        return {name: filled_json(each, update) for name, each in content.items()}
    return content


def _parts(text: str, update: Any, escape: Escape) -> Iterator[str]:
    """Yield what the text is made of, as long as it is not too much."""
    at, size = 0, 0
    for number, found in enumerate(_PATH.finditer(text)):
        if number == MAX_PATHS:
            raise TemplateTooLong(f"the template has more than {MAX_PATHS} references")
        part = text[at : found.start()] + escape(_value(found[1], update))
        at, size = found.end(), size + len(part)
        _check(size)
        yield part
    _check(size + len(text) - at)
    yield text[at:]


def _check(size: int) -> None:
    if size > MAX_TEXT:
        raise TemplateTooLong(f"the template makes more than {MAX_TEXT} characters of it")


def _value(path: str, update: Any) -> str:
    value = _found(path, update, "")
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _found(path: str, update: Any, nothing: Any) -> Any:
    """Return what a path leads to; `nothing` where it leads nowhere."""
    try:
        reference = plain("", path)
    except BadReference:
        return nothing
    if reference is None:
        return nothing
    value = update
    for step in reference.path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return nothing
    return value
