"""Service Object documents as tenants send them (contract, sections 1.2 and 2)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

from servioticy.domain.documents.aliases import Aliases
from servioticy.domain.documents.composites import members_of, parse_composite
from servioticy.domain.documents.errors import BadDocument
from servioticy.domain.documents.limits import (
    MAX_ALIASES,
    MAX_CHANNELS,
    MAX_MEMBERS,
    MAX_STREAMS,
    MAX_SUBSCRIPTIONS,
    Meter,
)
from servioticy.domain.documents.values import normal_type
from servioticy.domain.model import Channel, Definition, Dialect, Group, Stream, StreamRef

ArgumentNames = Callable[[str], tuple[str, ...]]
"""Reads the argument names of a JavaScript function's text (the sandbox knows how)."""

MAX_CHANNELS_OF_A_STREAM = 1000
MAX_NAME = 200
_NOT_IN_A_NAME = re.compile(r"[/\x00-\x1f]")


def parse_service_object(
    document: dict[str, Any],
    service_object: str,
    argument_names: ArgumentNames,
    meter: Meter | None = None,
) -> Definition:
    """Understand a document as the Service Object of that id, in time linear in its size.

    Raises BadDocument with the original platform's message and the place. The meter, if
    one is given, tells afterwards how much of each limit the document takes.
    """
    meter = meter or Meter()
    if document.get("streams") is None:
        raise BadDocument("Service Object without streams")
    streams = _object(document["streams"], "streams")
    meter.count(MAX_STREAMS, len(streams))
    _check_actions(document.get("actions"))
    groups = tuple(
        parse_group(name, content, meter)
        for name, content in _object(document.get("groups") or {}, "groups").items()
    )
    pairs = _aliases(document.get("aliases"), meter)
    dialect: Dialect = "function" if document.get("version") == "0.2.0" else "expression"
    aliases = Aliases(pairs if dialect == "expression" else (), meter)
    members = members_of(service_object, streams, groups)
    parsed = []
    for name, content in streams.items():
        ref = StreamRef(service_object, name_of(name, "stream"))
        content = _object(content, f"stream {name}")
        channels = _channels(name, content, aliases, meter)
        composite = parse_composite(
            ref, content, channels, members, aliases, dialect, argument_names, meter
        )
        if composite:
            read = sum(max(1, len(each.members)) for each in composite.inputs)
            meter.count(MAX_SUBSCRIPTIONS, read, f"stream {name}")
        parsed.append(Stream(ref, channels, composite))
    return Definition(service_object, tuple(parsed), groups, is_public(document))


def _channels(
    stream: str, content: dict[str, Any], aliases: Aliases, meter: Meter
) -> tuple[Channel, ...]:
    if content.get("channels") is None:
        raise BadDocument(f"stream: {stream} without channels")
    channels = _object(content["channels"], f"stream {stream}: channels")
    if len(channels) > MAX_CHANNELS_OF_A_STREAM:
        raise BadDocument(f"stream {stream} has more than {MAX_CHANNELS_OF_A_STREAM} channels")
    meter.count(MAX_CHANNELS, len(channels), f"stream {stream}")
    return tuple(_channel(stream, name, each, aliases) for name, each in channels.items())


def _channel(stream: str, name: str, content: Any, aliases: Aliases) -> Channel:
    place = f"stream {stream}: channel {name}"
    content = _object(content, place)
    name_of(name, "channel")
    if content.get("type") is None:
        raise BadDocument(f"channel {name} without type info")
    type_name = normal_type(aliases.expanded(str(content["type"]), f"{place}: type"))
    if type_name is None:
        raise BadDocument(f"Channel {name} with incorrect type: {content['type']}")
    if name == "location" and type_name != "geo_point":
        raise BadDocument("location channel has to be geo_point type")
    unit, code = content.get("unit"), content.get("current-value")
    for field, value in (("unit", unit), ("current-value", code)):
        if value is not None and not isinstance(value, str):
            raise BadDocument(f"{place}: {field} has to be text")
    return Channel(name, type_name, unit and aliases.expanded(unit, f"{place}: unit"), code)


def parse_group(name: str, content: Any, meter: Meter) -> Group:
    """A group as the document declares it. Raises BadDocument."""
    content = _object(content, f"group {name}")
    members, stream = content.get("soIds"), content.get("stream")
    if not isinstance(stream, str) or not isinstance(members, list):
        raise BadDocument(f"group {name} without soIds or stream", status=404)
    meter.count(MAX_MEMBERS, max(1, len(members)), f"group {name}")
    if not all(isinstance(each, str) and "\0" not in each for each in members):
        raise BadDocument(f"group {name}: soIds has to be an array of ids")
    return Group(name_of(name, "group"), tuple(dict.fromkeys(members)), name_of(stream, "stream"))


def _aliases(content: Any, meter: Meter) -> tuple[tuple[str, str], ...]:
    """Replacements in their order; the original takes an array of maps."""
    if content is None:
        return ()
    maps = content if isinstance(content, list) else [content]
    pairs = [pair for each in maps for pair in _object(each, "aliases").items()]
    if not all(isinstance(value, str) for _, value in pairs):
        raise BadDocument("aliases have to be maps of text to text")
    meter.count(MAX_ALIASES, len(pairs))
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


def name_of(name: str, kind: str) -> str:
    """The name, if it may be one: names become parts of URLs, topics and logs."""
    if not name.strip() or len(name) > MAX_NAME or _NOT_IN_A_NAME.search(name):
        raise BadDocument(
            f"{kind} name {orjson.dumps(name[:40]).decode()} is blank, longer than {MAX_NAME} "
            "characters or has a slash or control character in it"
        )
    return name


def is_public(document: dict[str, Any]) -> bool:
    """Public only when its text is exactly `true` (contract 1, authentication)."""
    value = document.get("public")
    return value is True or value == "true"
