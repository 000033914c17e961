"""What code of a document may name: its streams and groups, and values of their channels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from api.console.asking import Api

SHOWN = 500
ASKED = 10
"""Groups of which it is asked which channels they have; others are named by themselves."""


class Completion(NamedTuple):
    """A text that may be put in."""

    text: str
    of: str = ""
    """the stream or group of which it is a value"""
    channel: str = ""


def completions(document: Mapping[str, Any], api: Api) -> list[Completion]:
    """Return the first of them, of a document that the API has taken."""
    return list(islice(_all(document, api), SHOWN))


def _all(document: Mapping[str, Any], api: Api) -> Iterator[Completion]:
    is_function = document.get("version") == "0.2.0"
    for name, stream in (document.get("streams") or {}).items():
        yield Completion(name)
        yield from _values(name, stream, is_function=is_function)
    for number, (name, group) in enumerate((document.get("groups") or {}).items()):
        yield Completion(name)
        if is_function:
            yield Completion(f"iot.value({name})", name)
        if number < ASKED:
            yield from _values(name, _member(group, api), is_function=is_function)


def _values(name: str, stream: Mapping[str, Any], *, is_function: bool) -> Iterator[Completion]:
    for channel in stream.get("channels") or {}:
        if is_function:
            text = f"iot.value({name}, '{channel}')"
        else:
            text = f"{{${name}.channels.{channel}.current-value}}"
        yield Completion(text, name, channel)


def _member(group: Any, api: Api) -> Mapping[str, Any]:
    """Return the stream of a group's first Service Object; nothing where it may not be read."""
    ids, stream = (group.get("soIds") or [None])[0], group.get("stream")
    found = api.found(ids) if isinstance(ids, str) else None
    return ((found or {}).get("streams") or {}).get(stream) or {}
