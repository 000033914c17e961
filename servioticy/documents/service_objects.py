"""Service Object documents as tenants send them (contract, sections 1.2 and 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from servioticy.documents.composites import expanded, members_of, parse_composite
from servioticy.documents.errors import BadDocument
from servioticy.documents.values import normal_type
from servioticy.model import Channel, Composite, Definition, Dialect, Group, Stream, StreamRef

ArgumentNames = Callable[[str], tuple[str, ...]]
"""Reads the argument names of a JavaScript function's text (the sandbox knows how)."""

MAX_STREAMS = 1000
MAX_CHANNELS = 1000
MAX_NAME = 200
MAX_ALIASES = 200
MAX_PATHS = 1000
MAX_SUBSCRIPTIONS = 100_000
"""Edges of the stream graph: for each input of each stream, the members it reads."""
"""JSONPaths that are not plain; reading one takes about a millisecond."""


def parse_service_object(
    document: dict[str, Any], service_object: str, argument_names: ArgumentNames
) -> Definition:
    """Understand a document as the Service Object of that id.

    Raises BadDocument with the original platform's message and the place.
    """
    if document.get("streams") is None:
        raise BadDocument("Service Object without streams")
    streams = _object(document["streams"], "streams")
    if len(streams) > MAX_STREAMS:
        raise BadDocument(f"more than {MAX_STREAMS} streams in one Service Object")
    _check_actions(document.get("actions"))
    groups = tuple(
        _group(name, content)
        for name, content in _object(document.get("groups") or {}, "groups").items()
    )
    aliases = _aliases(document.get("aliases"))
    dialect: Dialect = "function" if document.get("version") == "0.2.0" else "expression"
    members = members_of(service_object, streams, groups)
    parsed = []
    paths = subscriptions = 0
    for name, content in streams.items():
        ref = StreamRef(service_object, _name(name, "stream"))
        content = _object(content, f"stream {name}")
        channels = _channels(name, content, aliases if dialect == "expression" else ())
        composite: Composite | None = parse_composite(
            ref, content, channels, members, aliases, dialect, argument_names
        )
        parsed.append(Stream(ref, channels, composite))
        paths += sum(not each.plain for each in composite.references) if composite else 0
        if paths > MAX_PATHS:
            raise BadDocument(f"more than {MAX_PATHS} JSONPaths in one Service Object")
        subscriptions += sum(len(each.members) for each in composite.inputs) if composite else 0
        if subscriptions > MAX_SUBSCRIPTIONS:
            raise BadDocument(
                f"stream {name}: more than {MAX_SUBSCRIPTIONS} subscriptions in one Service Object"
            )
    return Definition(service_object, tuple(parsed), groups, is_public(document))


def _channels(
    stream: str, content: dict[str, Any], aliases: tuple[tuple[str, str], ...]
) -> tuple[Channel, ...]:
    if content.get("channels") is None:
        raise BadDocument(f"stream: {stream} without channels")
    channels = _object(content["channels"], f"stream {stream}: channels")
    if len(channels) > MAX_CHANNELS:
        raise BadDocument(f"stream {stream} has more than {MAX_CHANNELS} channels")
    return tuple(_channel(stream, name, each, aliases) for name, each in channels.items())


def _channel(
    stream: str, name: str, content: Any, aliases: tuple[tuple[str, str], ...]
) -> Channel:
    content = _object(content, f"stream {stream}: channel {name}")
    _name(name, "channel")
    if content.get("type") is None:
        raise BadDocument(f"channel {name} without type info")
    type_name = normal_type(expanded(str(content["type"]), aliases))
    if type_name is None:
        raise BadDocument(f"Channel {name} with incorrect type: {content['type']}")
    if name == "location" and type_name != "geo_point":
        raise BadDocument("location channel has to be geo_point type")
    unit, code = content.get("unit"), content.get("current-value")
    for field, value in (("unit", unit), ("current-value", code)):
        if value is not None and not isinstance(value, str):
            raise BadDocument(f"stream {stream}: channel {name}: {field} has to be text")
    return Channel(name, type_name, unit and expanded(unit, aliases), code)


def _group(name: str, content: Any) -> Group:
    content = _object(content, f"group {name}")
    members, stream = content.get("soIds"), content.get("stream")
    if not isinstance(stream, str) or not isinstance(members, list):
        raise BadDocument(f"group {name} without soIds or stream", status=404)
    if not all(isinstance(each, str) and "\0" not in each for each in members):
        raise BadDocument(f"group {name}: soIds has to be an array of ids")
    return Group(_name(name, "group"), tuple(dict.fromkeys(members)), _name(stream, "stream"))


def _aliases(content: Any) -> tuple[tuple[str, str], ...]:
    """Replacements in their order; the original takes an array of maps."""
    if content is None:
        return ()
    maps = content if isinstance(content, list) else [content]
    pairs = [pair for each in maps for pair in _object(each, "aliases").items()]
    if not all(isinstance(value, str) for _, value in pairs):
        raise BadDocument("aliases have to be maps of text to text")
    if len(pairs) > MAX_ALIASES:
        raise BadDocument(f"more than {MAX_ALIASES} aliases in one Service Object")
    return tuple(pairs)


def _check_actions(content: Any) -> None:
    if content is None:
        return
    names = [each.get("name") if isinstance(each, dict) else None for each in _list(content)]
    if not all(isinstance(name, str) and name.strip() for name in names):
        raise BadDocument("actions has to be an array of objects, each with a name")
    if len(set(names)) != len(names):
        raise BadDocument("actions with the same name")


def _list(content: Any) -> list[Any]:
    if not isinstance(content, list):
        raise BadDocument("actions has to be an array of objects, each with a name")
    return content


def _object(content: Any, place: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise BadDocument(f"{place}: has to be a JSON object")
    return content


def _name(name: str, kind: str) -> str:
    """Names become parts of URLs, topics and logs."""
    if (
        not name.strip()
        or len(name) > MAX_NAME
        or any(c in "/\x00\r\n" or ord(c) < 32 for c in name)
    ):
        raise BadDocument(
            f"{kind} name {orjson.dumps(name[:40]).decode()} is blank, longer than {MAX_NAME} "
            "characters or has a slash or control character in it"
        )
    return name


def is_public(document: dict[str, Any]) -> bool:
    """Public only when its text is exactly `true` (contract 1, authentication)."""
    value = document.get("public")
    return value is True or value == "true"
