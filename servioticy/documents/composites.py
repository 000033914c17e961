"""The composite streams of a document, in both dialects (contract, sections 2.2 and 2.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

from servioticy.documents.errors import BadDocument
from servioticy.documents.options import parse_options
from servioticy.model import Channel, Composite, Dialect, Group, Input, Reference, StreamRef
from servioticy.references import RESULT, BadReference, substitute

MAX_CODE = 4096
MAX_EXPANDED = 4 * MAX_CODE
"""Code with its aliases replaced; without a limit a short list of them doubles for ever."""
MAX_REFERENCES = 1000
Members: TypeAlias = dict[str, tuple[StreamRef, ...]]
TRIGGER = "$input"
"""The argument name under which a function gets the update that triggered it."""


def parse_composite(
    ref: StreamRef,
    content: dict[str, Any],
    channels: tuple[Channel, ...],
    members: Members,
    aliases: tuple[tuple[str, str], ...],
    dialect: Dialect,
    argument_names: Callable[[str], tuple[str, ...]],
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
    filters = tuple(_filter(ref, content, name) for name in ("pre-filter", "post-filter"))
    texts = [channel.code for channel in channels if channel.code] + [f for f in filters if f]
    if any(len(text.encode()) > MAX_CODE for text in texts):
        raise BadDocument(f"stream {ref.stream}: more than {MAX_CODE} bytes of code in one place")
    sources = _Sources(ref, members)
    options = parse_options(ref.stream, content)
    if dialect == "function":
        composite = _functions(channels, filters, sources, argument_names)
    else:
        composite = _expressions(channels, filters, sources, aliases)
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


def expanded(text: str, aliases: Iterable[tuple[str, str]]) -> str:
    """The text with the aliases replaced in their order, earlier results included.

    Raises BadDocument where it would become too long.
    """
    for alias, replacement in aliases:
        growth = len(replacement) - len(alias)
        if growth > 0 and alias and len(text) + text.count(alias) * growth > MAX_EXPANDED:
            raise BadDocument(
                f"the alias {alias[:40]!r} makes a text of more than {MAX_EXPANDED} characters"
            )
        text = text.replace(alias, replacement) if alias else text
    return text


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
) -> Composite:
    names: list[str] = []
    for channel in channels:
        try:
            names += argument_names(channel.code or "")
        except ValueError as error:
            raise BadDocument(
                f"stream {sources.ref.stream}: channel {channel.name}: {error}"
            ) from error
    inputs = sources.inputs((n for n in names if n != TRIGGER), "a function")
    own = sources.own(inputs)
    if own is None and sources.ref.stream not in {each.name for each in inputs}:
        # Always available under its own name, an argument or not (contract 2.3).
        inputs += sources.inputs([sources.ref.stream], "the stream")
        own = sources.own(inputs)
    pre, post = filters
    return Composite("function", inputs, channels, own, pre, post)


def _expressions(
    channels: tuple[Channel, ...],
    filters: tuple[str | None, ...],
    sources: _Sources,
    aliases: tuple[tuple[str, str], ...],
) -> Composite:
    references: list[Reference] = []

    def bound(text: str) -> str:
        bound_text = substitute(expanded(text, aliases), references)
        if len(references) > MAX_REFERENCES:
            raise BadDocument(
                f"stream {sources.ref.stream}: more than {MAX_REFERENCES} references"
            )
        return bound_text

    try:
        channels = tuple(replace(each, code=bound(each.code or "")) for each in channels)
        pre, post = (None if text is None else bound(text) for text in filters)
    except BadReference as error:
        raise BadDocument(f"stream {sources.ref.stream}: {error}") from error
    named = [each.source for each in references if each.source != RESULT]
    inputs = sources.inputs(named, "an expression")
    own = sources.own(inputs)
    return Composite("expression", inputs, channels, own, pre, post, tuple(references))
