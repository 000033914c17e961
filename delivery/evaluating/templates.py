"""The original's templates of HTTP callbacks: aliases, then `{$.path}` out of the update.

What an update says is data. It is put into an address as one segment or value, into a header
without line ends, and into a body as the inside of a JSON text; it can be no more than that.
Whoever fills several texts for one attempt fills them from one budget.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

import orjson

from delivery.evaluating.budget import Budget, TooMuch
from servioticy.domain.references import BadReference, plain

_PATH = re.compile(r"\{\$((?:\.|\[)[^{}]*)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

Escape = Callable[[str], str]


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


def has_reference(content: Any) -> bool:
    """Return whether a text, or one of the texts in some JSON, may be filled from an update."""
    text = content if isinstance(content, str) else orjson.dumps(content).decode()
    return "{$" in text


def filled(
    text: str, aliases: Mapping[str, str], update: Any, escape: Escape, budget: Budget
) -> str:
    """Return the text with all aliases and paths replaced. Raises TooMuch.

    A path that leads nowhere is replaced by nothing.
    """
    for name, meaning in aliases.items():
        if name:
            # Before it is made: it may be a thousand times as long.
            budget.check(len(text) + text.count(name) * (len(meaning) - len(name)))
            text = text.replace(name, meaning)
    return "".join(_parts(text, update, escape, budget))


def filled_json(content: Any, update: Any, budget: Budget) -> Any:
    """Return JSON in which each text is filled; one that is a path and nothing else becomes what
    the path leads to, of whatever type. Raises TooMuch."""
    if isinstance(content, str):
        path = _PATH.fullmatch(content)
        if path is None:
            return filled(content, {}, update, as_it_is, budget)
        budget.refer()
        value = _found(path[1], update, None)
        budget.take_value(value)
        return value
    if isinstance(content, list):
        return [filled_json(each, update, budget) for each in content]
    if isinstance(content, dict):
        return {name: filled_json(each, update, budget) for name, each in content.items()}
    return content


def _parts(text: str, update: Any, escape: Escape, budget: Budget) -> Iterator[str]:
    """Yield what the text is made of, as long as it is not too much."""
    at = 0
    for found in _PATH.finditer(text):
        budget.refer()
        budget.take(found.start() - at)
        yield text[at : found.start()]
        value = escape(_text(_found(found[1], update, ""), budget))
        budget.take(len(value))
        yield value
        at = found.end()
    budget.take(len(text) - at)
    yield text[at:]


def _text(value: Any, budget: Budget) -> str:
    budget.check_value(value)
    try:
        return value if isinstance(value, str) else orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        raise TooMuch(str(error)) from error  # it is nested too deeply


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
