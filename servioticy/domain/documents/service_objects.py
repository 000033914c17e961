"""Service Object documents as tenants send them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

from servioticy.domain.documents.aliases import Alias, Aliases
from servioticy.domain.documents.code import MEMBERS, Context, reading_members
from servioticy.domain.documents.codes import (
    BAD_NAME,
    CHANNEL_TYPE,
    DUPLICATE,
    INCOMPLETE_GROUP,
    REQUIRED,
    TOO_MUCH,
    WRONG_TYPE,
)
from servioticy.domain.documents.composites import parse_composite
from servioticy.domain.documents.dialects import dialect_of
from servioticy.domain.documents.errors import WHOLE, BadDocument, Part
from servioticy.domain.documents.limits import (
    MAX_ALIASES,
    MAX_CHANNELS,
    MAX_MEMBERS,
    MAX_STREAMS,
    MAX_SUBSCRIPTIONS,
    Meter,
)
from servioticy.domain.documents.operators import by_default, naming_programs
from servioticy.domain.model import Channel, Definition, Group, Stream, StreamRef
from servioticy.domain.pauses import Paused, finished
from servioticy.domain.values import normal_type

ArgumentNames = Callable[[str], tuple[str, ...]]
"""Reads the argument names of a JavaScript function's text (the sandbox knows how)."""

MAX_CHANNELS_OF_A_STREAM = 1000
MAX_NAME = 200
COUNTED = 50
"""Channels of a stream that are counted at once, before they are read."""
ACTIONS = 500
"""Until there is a pause."""
STREAMS = 'It is {"streams":{"NAME":{"channels":{"NAME":{"type":"number"}}}}} at least'
TYPES = "A type is number, string, boolean, geo_point, or Array[...] of one of them"
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
    return finished(reading_service_object(document, service_object, argument_names, meter))


def reading_service_object(
    document: dict[str, Any],
    service_object: str,
    argument_names: ArgumentNames,
    meter: Meter | None = None,
) -> Paused[Definition]:
    """Understand it so, with a pause after each stream, and where its meter says."""
    meter = meter or Meter()
    if document.get("streams") is None:
        raise BadDocument("Service Object without streams", "", REQUIRED).hinted(STREAMS)
    place = WHOLE.at("streams", words="streams")
    if not isinstance(document["streams"], dict):
        raise place.bad("has to be a JSON object", WRONG_TYPE).hinted(STREAMS)
    streams = document["streams"]
    meter.count(MAX_STREAMS, len(streams), WHOLE.at("streams"))
    yield from _check_actions(document.get("actions"))
    _check_ttl(document.get("dataTTL"))
    groups = []
    whole = WHOLE.at("groups", words="groups")
    for name, content in _object(_groups(document.get("groups")), whole).items():
        groups.append((yield from reading_group(name, content, meter)))
    context = yield from context_of(document, argument_names, meter)
    context = context._replace(
        members=(yield from reading_members(service_object, streams, groups)),
        by_default=by_default(streams, [each.name for each in groups]),
        programs=naming_programs(streams),
    )
    parsed = []
    for name, content in streams.items():
        ref = StreamRef(service_object, name)
        parsed.append((yield from _stream(ref, content, context)))
        yield
    return Definition(service_object, tuple(parsed), tuple(groups), is_public(document))


def context_of(
    document: dict[str, Any], argument_names: ArgumentNames, meter: Meter
) -> Paused[Context]:
    """Return what all code of a document has in common, but for what it may name."""
    aliases = _aliases(document.get("aliases"), meter)
    dialect = yield from dialect_of(document, argument_names)
    known = Aliases(meter)
    yield from known.learn(aliases if dialect == "expression" else ())
    return Context(dialect, {}, known, argument_names, meter)


def _stream(ref: StreamRef, content: Any, context: Context) -> Paused[Stream]:
    name = ref.stream
    part = WHOLE.at("streams", name, words=f"stream {name}")
    check_name(name, "stream", part)
    content = _object(content, part)
    channels = yield from _channels(name, content, part, context)
    composite = yield from parse_composite(ref, content, channels, part, context)
    if composite:
        edges = sum(max(1, len(each.members)) for each in composite.inputs)
        context.meter.count(MAX_SUBSCRIPTIONS, edges, part)
    return Stream(ref, channels, composite)


def _channels(
    stream: str, content: dict[str, Any], part: Part, context: Context
) -> Paused[tuple[Channel, ...]]:
    if content.get("channels") is None:
        raise BadDocument(f"stream: {stream} without channels", part.pointer, REQUIRED)
    all_channels = part.at("channels", words="channels")
    channels = _object(content["channels"], all_channels)
    if len(channels) > MAX_CHANNELS_OF_A_STREAM:
        reason = f"stream {stream} has more than {MAX_CHANNELS_OF_A_STREAM} channels"
        raise BadDocument(reason, all_channels.pointer, TOO_MUCH)
    parsed = []
    for number, (name, each) in enumerate(channels.items()):
        if not number % COUNTED:
            some = min(COUNTED, len(channels) - number)
            context.meter.count(MAX_CHANNELS, some, part.at("channels"))
        if context.meter.pauses():
            yield
        parsed.append((yield from _channel(name, each, part, context.aliases)))
    return tuple(parsed)


def _channel(name: str, content: Any, stream: Part, aliases: Aliases) -> Paused[Channel]:
    part = stream.at("channels", name, words=f"channel {name}")
    content = _object(content, part)
    check_name(name, "channel", part)
    if content.get("type") is None:
        raise BadDocument(f"channel {name} without type info", part.pointer, REQUIRED)
    type_part = part.at("type", words="type")
    written = str(content["type"])
    known = aliases.known(written, type_part)
    type_name = normal_type(known or (yield from aliases.expanded(written, type_part)))
    if type_name is None:
        reason = f"Channel {name} with incorrect type: {content['type']}"
        raise BadDocument(reason, type_part.pointer, CHANNEL_TYPE).hinted(TYPES)
    if name == "location" and type_name != "geo_point":
        reason = "location channel has to be geo_point type"
        raise BadDocument(reason, type_part.pointer, CHANNEL_TYPE)
    unit, code = content.get("unit"), content.get("current-value")
    for field, value in (("unit", unit), ("current-value", code)):
        if value is not None and not isinstance(value, str):
            reason = f"{part.words}: {field} has to be text"
            raise BadDocument(reason, part.at(field).pointer, WRONG_TYPE)
    if unit:
        unit = yield from aliases.expanded(unit, part.at("unit", words="unit"))
    return Channel(name, type_name, unit, code)


def parse_group(name: str, content: Any, meter: Meter) -> Group:
    """Return a group as the document declares it. Raises BadDocument."""
    return finished(reading_group(name, content, meter))


def reading_group(name: str, content: Any, meter: Meter) -> Paused[Group]:
    """The same with pauses."""
    if meter.pauses():
        yield
    part = WHOLE.at("groups", name, words=f"group {name}")
    content = _object(content, part)
    members, stream = _members_and_stream(content)
    if not isinstance(stream, str) or not isinstance(members, list):
        reason = f"group {name} without soIds or stream"
        raise BadDocument(reason, part.pointer, INCOMPLETE_GROUP)
    ids = part.at("soIds")
    meter.count(MAX_MEMBERS, max(1, len(members)), ids)
    for number, each in enumerate(members):
        if number % MEMBERS == MEMBERS - 1:
            yield
        if not isinstance(each, str) or "\0" in each:
            reason = f"{part.words}: soIds has to be an array of ids"
            raise BadDocument(reason, ids.at(number).pointer, WRONG_TYPE)
    check_name(name, "group", part)
    check_name(stream, "stream", part.at("stream"))
    return Group(name, tuple(dict.fromkeys(members)), stream)


def _members_and_stream(group: dict[str, Any]) -> tuple[Any, Any]:
    """Return what a group says of both; one with conditions may have no members yet."""
    members, stream = group.get("soIds"), group.get("stream")
    where = group.get("where")
    if isinstance(where, dict):
        members = [] if members is None else members
        stream = where.get("stream") if stream is None else stream
    return members, stream[0] if isinstance(stream, list) and len(stream) == 1 else stream


def _groups(content: Any) -> Any:
    """Return the groups; there are none where the document says null, or an empty list."""
    return {} if content is None or content == [] else content


def _aliases(content: Any, meter: Meter) -> list[Alias]:
    """Return the aliases in their order; the original takes an array of maps."""
    if content is None:
        return []
    whole = WHOLE.at("aliases", words="aliases")
    maps = [(whole, content)]
    if isinstance(content, list):
        maps = [(whole.at(number), each) for number, each in enumerate(content)]
    aliases = []
    for part, each in maps:
        for name, text in _object(each, part).items():
            alias = Part((*part.steps, name), f"alias {name[:40]!r}")
            if not isinstance(text, str):
                reason = "aliases have to be maps of text to text"
                raise BadDocument(reason, alias.pointer, WRONG_TYPE)
            aliases.append(Alias(name, text, alias))
    meter.count(MAX_ALIASES, len(aliases), WHOLE.at("aliases"))
    return aliases


def _check_actions(content: Any) -> Paused[None]:
    if content is None:
        return
    whole = WHOLE.at("actions")
    reason = "actions has to be an array of objects, each with a name"
    if not isinstance(content, list):
        raise BadDocument(reason, whole.pointer, WRONG_TYPE)
    names: set[str] = set()
    for number, each in enumerate(content):
        if number % ACTIONS == ACTIONS - 1:
            yield
        action = whole.at(number)
        if not isinstance(each, dict):
            raise BadDocument(reason, action.pointer, WRONG_TYPE)
        if "name" not in each:
            raise BadDocument(reason, action.pointer, REQUIRED)
        name = each["name"]
        if not isinstance(name, str) or not name.strip():
            code = BAD_NAME if isinstance(name, str) else WRONG_TYPE
            raise BadDocument(reason, action.at("name").pointer, code)
        if name in names:
            raise BadDocument("actions with the same name", action.at("name").pointer, DUPLICATE)
        names.add(name)


def _check_ttl(seconds: Any) -> None:
    """Raise BadDocument unless it is a number of seconds. It is kept, and not acted upon."""
    if seconds is not None and (not isinstance(seconds, int) or isinstance(seconds, bool)):
        raise WHOLE.at("dataTTL").bad("dataTTL has to be an integer", WRONG_TYPE)


def _object(content: Any, part: Part) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise part.bad("has to be a JSON object", WRONG_TYPE)
    return content


def check_name(name: str, kind: str, part: Part) -> None:
    """Raise BadDocument unless it may be a name: names become parts of URLs, topics and logs."""
    if not name.strip() or len(name) > MAX_NAME or _NOT_IN_A_NAME.search(name):
        reason = (
            f"{kind} name {orjson.dumps(name[:40]).decode()} is blank, longer than {MAX_NAME} "
            "characters or has a slash or control character in it"
        )
        raise BadDocument(reason, part.pointer, BAD_NAME)


def is_public(document: dict[str, Any]) -> bool:
    """Tell whether it is public: only if the text is exactly `true`."""
    value = document.get("public")
    return value is True or value == "true"
