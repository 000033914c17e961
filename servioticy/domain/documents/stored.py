"""Documents that were accepted once, understood by the rules of today and remembered.

A release may read more strictly than the one that accepted a document. What it cannot
understand any more keeps its streams, and nothing of it computes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from hashlib import sha256
from sys import getsizeof
from typing import Any, NamedTuple

import orjson

from servioticy.domain.cache import Cache
from servioticy.domain.documents.errors import BadDocument
from servioticy.domain.documents.limits import MAX_SUBSCRIPTIONS, Laborious, Meter
from servioticy.domain.documents.service_objects import (
    ArgumentNames,
    is_public,
    parse_group,
    reading_service_object,
)
from servioticy.domain.model import Channel, Composite, Definition, Group, Input, Stream, StreamRef
from servioticy.domain.pauses import Paces, Paused, finished
from servioticy.domain.values import ANY, normal_type
from servioticy.domain.windows.model import Window
from servioticy.errors import Unavailable

Parse = Callable[[dict[str, Any], str, Meter], Definition]
"""Understands a document as the Service Object of that id, and counts."""

Read = Callable[[dict[str, Any], str, Meter], Paused[Definition]]
"""The same with pauses."""

ALIKE = 8
"""One part in so many of the room is for documents by their content."""

UNDERSTOOD = ("streams", "groups", "aliases", "version", "actions", "public")
"""What of a document its definition depends on."""

MAX_LOGGED = 10_000
"""Versions whose problem has been logged and is not logged again, the latest ones."""

log = logging.getLogger("servioticy.domain.documents")


def reading(argument_names: ArgumentNames) -> Read:
    """Return a Read for the thread that asks, with this reader of arguments."""

    def read(document: dict[str, Any], service_object: str, meter: Meter) -> Paused[Definition]:
        return reading_service_object(document, service_object, argument_names, meter)

    return read


def at_once(parse: Parse) -> Read:
    """Return a Read without pauses."""

    def read(document: dict[str, Any], service_object: str, meter: Meter) -> Paused[Definition]:
        yield from ()
        return parse(document, service_object, meter)

    return read


class Understood(NamedTuple):
    """A version of a Service Object."""

    definition: Definition
    streams: dict[str, Stream]
    problem: str | None
    """why it is not understood any more, if so: then `definition` is only what it declares"""
    share: float
    """what reading it took, as a part of what one document may take"""
    edges: int
    """its subscriptions"""


class Documents:
    """Stored documents, each parsed once while there is room for it."""

    def __init__(self, read: Read, room: int, *, keeps_copies: bool = True) -> None:
        """`room`: about how many bytes of memory the parsed ones may take.

        Without `keeps_copies` one of those that are alike is kept, and the others are copied from
        it whenever they are at hand.
        """
        self._read = read
        self._keeps_copies = keeps_copies
        self._kept: Cache[tuple[str, int], Understood] = Cache(room)
        self._by_content: Cache[bytes, Understood] = Cache(room // ALIKE)
        """Those without groups, which mean the same whoever they are of."""
        self._logged: Cache[tuple[str, int], bool] = Cache(MAX_LOGGED)

    def known(self, service_object: str, version: int) -> Understood | None:
        """Return the version if it is kept."""
        return self._kept.get((service_object, version))

    def forget_unused(self, seconds: float) -> int:
        """Forget versions that nobody has asked for, for so long; return how many."""
        return self._kept.forget_unused(seconds) + self._by_content.forget_unused(seconds)

    def understood(
        self,
        service_object: str,
        version: int,
        document: bytes | str,
        parse: Parse | None = None,
    ) -> Understood:
        """Return the version, whose document is at hand. It never changes, so it is parsed once.

        `parse`: how, this time. What it raises of Unavailable and Laborious is passed on.
        """
        return finished(self.understanding(service_object, version, document, parse))

    def understanding(
        self,
        service_object: str,
        version: int,
        document: bytes | str,
        parse: Parse | None = None,
    ) -> Paused[Understood]:
        """The same with pauses."""
        key = (service_object, version)
        found = self._kept.get(key)
        if found is None:
            content = _loaded(document)
            yield
            digest = _digest(content, document)
            alike = self._by_content.get(digest)
            yield
            if alike is not None:
                found = yield from of_another(alike, service_object)
            else:
                read = self._read if parse is None else at_once(parse)
                found = yield from self._understand(key, content, len(document), read)
            if alike is None or self._keeps_copies:
                size = yield from weighing(found.definition)
                self._kept.put(key, found, size)
                if alike is None and found.problem is None and not found.definition.groups:
                    self._by_content.put(digest, found, size)
        return found

    def _understand(
        self, key: tuple[str, int], content: Any, size: int, read: Read
    ) -> Paused[Understood]:
        """`content`: the document, or why it cannot be loaded; `size` is what it has as JSON."""
        meter, problem = Meter(), None
        try:
            if isinstance(content, Exception):
                raise content
            definition = yield from read(content, key[0], meter)
        except (MemoryError, Unavailable, Laborious):
            raise
        except Exception as error:  # noqa: BLE001  it was accepted, and others wait for its reader
            problem = str(error) if isinstance(error, BadDocument) else repr(error)
            self._log_once(key, problem)
            definition = yield from declaring(content, key[0])
        streams = {each.ref.stream: each for each in definition.streams}
        edges = meter.counts.get(MAX_SUBSCRIPTIONS, 0)
        return Understood(definition, streams, problem, meter.share(size), edges)

    def _log_once(self, key: tuple[str, int], problem: str) -> None:
        if self._logged.get(key):
            return
        self._logged.put(key, True, 1)
        facts = {"service_object": key[0], "version": key[1], "reason": problem[:500]}
        log.error("definition_not_understood", extra=facts)


def digest_of(document: dict[str, Any]) -> bytes:
    """Return what documents have in common that differ in nothing that is understood of them."""
    return sha256(orjson.dumps([document.get(each) for each in UNDERSTOOD])).digest()


def _loaded(text: bytes | str) -> Any:
    """Return what the JSON is, or the error with which that ends."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return error


def _digest(content: Any, text: bytes | str) -> bytes:
    try:
        return digest_of(content)
    except Exception:  # noqa: BLE001  whoever understands it says why it cannot be
        return sha256(text.encode() if isinstance(text, str) else text).digest()


def of_another(known: Understood, service_object: str) -> Paused[Understood]:
    """Return the same document, which has no groups, as another Service Object's."""
    definition = yield from copying(known.definition, service_object)
    return known._replace(
        definition=definition, streams={each.ref.stream: each for each in definition.streams}
    )


def as_another(known: Definition, service_object: str) -> Definition:
    """Return the definition as another Service Object's, which none of its groups names."""
    return finished(copying(known, service_object))


def copying(known: Definition, service_object: str) -> Paused[Definition]:
    """The same with pauses."""

    def renamed(stream: Stream) -> Stream:
        composite = stream.composite
        if composite is not None:
            inputs = tuple([Input(each.name, refs(each.members)) for each in composite.inputs])
            composite = replace(composite, inputs=inputs)
        return Stream(own[stream.ref], stream.channels, composite)

    def refs(members: Iterable[StreamRef]) -> tuple[StreamRef, ...]:
        return tuple([own.get(each, each) for each in members])

    own = {each.ref: StreamRef(service_object, each.ref.stream) for each in known.streams}
    paces = Paces()
    streams = []
    for each in known.streams:
        if paces.pauses(1 + _inputs(each)):
            yield
        streams.append(renamed(each))
    like = known.like or known
    return Definition(service_object, tuple(streams), known.groups, known.public, like)


def declaring(document: Any, service_object: str) -> Paused[Definition]:
    """Return the streams and groups that a document names, all streams simple; whatever it is."""
    content, paces = _object(document), Paces()
    streams = []
    for name, each in _object(content.get("streams")).items():
        channels = _object(_object(each).get("channels"))
        if paces.pauses(1 + len(channels)):
            yield
        streams.append(Stream(StreamRef(service_object, name), _channels(channels)))
    groups = []
    for name, each in _object(content.get("groups")).items():
        if paces.pauses(1):
            yield
        group = _group(name, each)
        groups += [] if group is None else [group]
    return Definition(service_object, tuple(streams), tuple(groups), is_public(content))


def _inputs(stream: Stream) -> int:
    """How many streams it reads."""
    return sum(len(each.members) for each in stream.composite.inputs) if stream.composite else 0


def _channels(content: dict[str, Any]) -> tuple[Channel, ...]:
    return tuple(
        Channel(name, normal_type(str(_object(each).get("type"))) or ANY)
        for name, each in content.items()
    )


def _group(name: str, content: Any) -> Group | None:
    try:
        return parse_group(name, content, Meter())
    except BadDocument:
        return None


def _object(content: Any) -> dict[str, Any]:
    return content if isinstance(content, dict) else {}


def memory(definition: Definition) -> int:
    """About how many bytes the definition takes."""
    return finished(weighing(definition))


def weighing(definition: Definition) -> Paused[int]:
    """The same with pauses."""
    size, paces = 1000, Paces()
    for group in definition.groups:
        if paces.pauses(1 + len(group.service_objects)):
            yield
        size += 300 + sum(150 + getsizeof(each) for each in group.service_objects)
    for stream in definition.streams:
        composite = stream.composite
        if paces.pauses(1 + len(stream.channels) + len(composite.references if composite else ())):
            yield
        size += _memory_of_stream(stream)
    return size


def _memory_of_stream(stream: Stream) -> int:
    return (
        500
        + getsizeof(stream.ref.stream)
        + sum(map(_memory_of_channel, stream.channels))
        + (_memory_of_composite(stream.composite) if stream.composite else 0)
    )


def _memory_of_channel(channel: Channel) -> int:
    texts = (channel.name, channel.unit, channel.code)
    return 100 + sum(getsizeof(text) for text in texts if text is not None)


def _memory_of_composite(composite: Composite) -> int:
    references = sum(
        200 + getsizeof(each.expression) + (16 if each.plain else 200) * len(each.path)
        for each in composite.references
    )
    filters = getsizeof(composite.pre_filter) + getsizeof(composite.post_filter)
    channels = sum(map(_memory_of_channel, composite.channels))
    window = composite.window
    fold = window.fold if isinstance(window, Window) else None
    folds = 200 + getsizeof(fold.code) if fold is not None else 0
    return 300 + 120 * len(composite.inputs) + references + filters + channels + folds
