"""The composite streams of a document, in both dialects (contract, sections 2.2 and 2.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

from servioticy.domain.documents.aliases import Aliases, size
from servioticy.domain.documents.errors import BadDocument
from servioticy.domain.documents.limits import (
    MAX_ARGUMENTS,
    MAX_PATH_CHARACTERS,
    MAX_PATHS,
    MAX_REFERENCES,
    MAX_STEPS,
    MAX_TEXT,
    Meter,
)
from servioticy.domain.documents.options import parse_options
from servioticy.domain.model import Channel, Composite, Dialect, Group, Input, Reference, StreamRef
from servioticy.domain.references import RESULT, BadReference, plain, selecting, substitute

MAX_CODE = 4096
MAX_REFERENCES_OF_A_STREAM = 1000
FILTERS = ("pre-filter", "post-filter")
Members: TypeAlias = dict[str, tuple[StreamRef, ...]]
TRIGGER = "$input"
"""The argument name under which a function gets the update that triggered it."""


def parse_composite(
    ref: StreamRef,
    content: dict[str, Any],
    channels: tuple[Channel, ...],
    members: Members,
    aliases: Aliases,
    dialect: Dialect,
    argument_names: Callable[[str], tuple[str, ...]],
    meter: Meter,
) -> Composite | None:
    """How the stream is computed, or None for a simple stream.

    `members` is what code may name (see `members_of`). Raises BadDocument where channels
    with and without code are mixed, where code names a source that the document does not
    have, or where it is too long.
    """
    if all(channel.code is None for channel in channels):
        return None
    if any(channel.code is None for channel in channels):
        raise BadDocument(f"stream {ref.stream}: some channels have a current-value, some not")
    filters = tuple(_filter(ref, content, name) for name in FILTERS)
    texts = [channel.code for channel in channels if channel.code] + [f for f in filters if f]
    if any(size(text) > MAX_CODE for text in texts):
        raise BadDocument(f"stream {ref.stream}: more than {MAX_CODE} bytes of code in one place")
    sources = _Sources(ref, members)
    options = parse_options(ref.stream, content)
    if dialect == "function":
        composite = _functions(channels, filters, sources, argument_names, meter)
    else:
        composite = _expressions(channels, filters, sources, aliases, meter)
    return replace(composite, options=options)


def _filter(ref: StreamRef, content: dict[str, Any], name: str) -> str | None:
    value = content.get(name)
    if value is not None and not isinstance(value, str):
        raise BadDocument(f"stream {ref.stream}: {name} has to be text")
    return value


def members_of(service_object: str, streams: Iterable[str], groups: Iterable[Group]) -> Members:
    """What the code of a document may name, and the streams meant by it.

    A group named like a stream shadows the stream (contract 2.1).
    """
    members: Members = {name: (StreamRef(service_object, name),) for name in streams}
    for group in groups:
        members[group.name] = tuple(
            StreamRef(each, group.stream) for each in group.service_objects
        )
    return members


class _Sources:
    """What code of one stream may name: the streams of its object, and its groups."""

    def __init__(self, ref: StreamRef, members: Members) -> None:
        self.ref = ref
        self._members = members

    def inputs(self, names: Iterable[str], where: str) -> tuple[Input, ...]:
        """The inputs of these names, each once, in order."""
        found = []
        for name in dict.fromkeys(names):
            if name not in self._members:
                raise BadDocument(
                    f"stream {self.ref.stream}: {where} names {name!r}, which is neither a "
                    "stream nor a group of this document"
                )
            found.append(Input(name, self._members[name]))
        return tuple(found)

    def own(self, inputs: tuple[Input, ...]) -> int | None:
        """Which of the inputs is the stream's own last update."""
        places = [n for n, each in enumerate(inputs) if each.members == (self.ref,)]
        return places[0] if places else None


def _functions(
    channels: tuple[Channel, ...],
    filters: tuple[str | None, ...],
    sources: _Sources,
    argument_names: Callable[[str], tuple[str, ...]],
    meter: Meter,
) -> Composite:
    names: list[str] = []
    for channel in channels:
        place = f"stream {sources.ref.stream}: channel {channel.name}"
        code = channel.code or ""
        meter.count(MAX_TEXT, size(code), place)
        try:
            found = argument_names(code)
        except ValueError as error:
            raise BadDocument(f"{place}: {error}") from error
        meter.count(MAX_ARGUMENTS, len(found), place)
        names += found
    inputs = sources.inputs((n for n in names if n != TRIGGER), "a function")
    own = sources.own(inputs)
    if own is None and sources.ref.stream not in {each.name for each in inputs}:
        # Always available under its own name, an argument or not (contract 2.3).
        inputs += sources.inputs([sources.ref.stream], "the stream")
        own = sources.own(inputs)
    pre, post = filters
    meter.count(MAX_TEXT, size(pre or "") + size(post or ""), f"stream {sources.ref.stream}")
    return Composite("function", inputs, channels, own, pre, post)


def _expressions(
    channels: tuple[Channel, ...],
    filters: tuple[str | None, ...],
    sources: _Sources,
    aliases: Aliases,
    meter: Meter,
) -> Composite:
    references = _References(f"stream {sources.ref.stream}", meter)

    def bound(text: str, where: str) -> str:
        place = f"stream {sources.ref.stream}: {where}"
        return substitute(aliases.expanded(text, place), references.number)

    channels = tuple(
        replace(each, code=bound(each.code or "", f"channel {each.name}")) for each in channels
    )
    pre, post = (
        None if text is None else bound(text, where)
        for text, where in zip(filters, FILTERS, strict=True)
    )
    found = tuple(references.found)
    named = [each.source for each in found if each.source != RESULT]
    inputs = sources.inputs(named, "an expression")
    own = sources.own(inputs)
    return Composite("expression", inputs, channels, own, pre, post, found)


class _References:
    """The references of one stream, each once, numbered in the order of the text."""

    def __init__(self, place: str, meter: Meter) -> None:
        self.found: dict[Reference, int] = {}
        self._spelled: dict[tuple[str, str], int] = {}
        self._place = place
        self._meter = meter

    def number(self, source: str, path: str) -> int:
        """The number of what is written `{$source.path}`."""
        spelled = (source, path)
        number = self._spelled.get(spelled)
        if number is None:
            number = self._spelled[spelled] = self._numbered(self._read(source, path))
        return number

    def _numbered(self, reference: Reference) -> int:
        number = self.found.get(reference)
        if number is None:
            number = self.found[reference] = len(self.found)
            if number >= MAX_REFERENCES_OF_A_STREAM:
                raise BadDocument(
                    f"{self._place}: more than {MAX_REFERENCES_OF_A_STREAM} references"
                )
            self._meter.count(MAX_REFERENCES, 1, self._place)
        return number

    def _read(self, source: str, path: str) -> Reference:
        try:
            reference = plain(source, path)
            if reference is None:
                self._meter.count(MAX_PATHS, 1, self._place)
                self._meter.count(MAX_PATH_CHARACTERS, len(path), self._place)
                reference = selecting(source, path)
        except BadReference as error:
            raise BadDocument(f"{self._place}: {error}") from error
        self._meter.count(MAX_STEPS, 1 + len(reference.path), self._place)
        return reference
