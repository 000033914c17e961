"""The code of a composite stream: as a document has it, and as a dialect understands it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from servioticy.domain.documents.aliases import Aliases
from servioticy.domain.documents.codes import UNKNOWN_SOURCE
from servioticy.domain.documents.errors import BadDocument, Part
from servioticy.domain.documents.limits import Meter
from servioticy.domain.model import Dialect, Group, Input, Reference, StreamRef
from servioticy.domain.pauses import Paused

PRE_FILTER, POST_FILTER = "pre-filter", "post-filter"

Members: TypeAlias = dict[str, tuple[StreamRef, ...]]


class Context(NamedTuple):
    """What the composite streams of one document have in common."""

    dialect: Dialect
    members: Members
    """what code may name (see `reading_members`)"""
    aliases: Aliases
    argument_names: Callable[[str], tuple[str, ...]]
    meter: Meter
    by_default: tuple[str, ...] = ()
    """the names of what wakes a program where its stream does not say"""
    programs: frozenset[str] = frozenset()
    """the streams that name a program"""


class Code(NamedTuple):
    """A text of JavaScript, and the part of the document that it is."""

    text: str
    part: Part


class Written(NamedTuple):
    """The code of a composite stream as the document has it."""

    ref: StreamRef
    stream: Part
    channels: list[Code]
    pre_filter: Code | None
    post_filter: Code | None
    fold: Code | None = None
    """Of its windows: no code of the stream's own output."""
    when: Code | None = None
    """Of its windows: whether they come out."""

    @property
    def codes(self) -> list[Code]:
        """All of its code that makes outputs."""
        filters = (self.pre_filter, self.post_filter)
        return self.channels + [each for each in filters if each is not None]


class Parsed(NamedTuple):
    """The code of a composite stream, understood: bodies, and the inputs that they read."""

    inputs: tuple[Input, ...]
    channels: list[str]
    pre_filter: str | None
    post_filter: str | None
    references: tuple[Reference, ...] = ()
    when: str | None = None


MEMBERS = 5000
"""Of groups, until there is a pause: about a millisecond."""
EACH = 2
"""What a group takes itself, as a number of members."""


def reading_members(
    service_object: str, streams: Iterable[str], groups: Iterable[Group]
) -> Paused[Members]:
    """Return what the code of a document may name, and the streams meant by it.

    A group named like a stream shadows the stream.
    """
    members: Members = {name: (StreamRef(service_object, name),) for name in streams}
    count = 0
    for group in groups:
        if count >= MEMBERS:
            yield
            count = 0
        refs: list[StreamRef] = []
        ids = group.service_objects
        for first in range(0, len(ids), MEMBERS):
            refs += [StreamRef(each, group.stream) for each in ids[first : first + MEMBERS]]
            count += len(refs) - first
            if len(refs) < len(ids):
                yield
        members[group.name] = tuple(refs)
        count += EACH
    return members


def code_of(stream: Part, channel: str) -> Part:
    """Return the part of a document that is a channel's code; messages call it as the channel."""
    return stream.at("channels", channel, "current-value", words=f"channel {channel}")


def inputs_of(
    names: Mapping[str, Part], kind: str, written: Written, context: Context
) -> tuple[Input, ...]:
    """Return the inputs of these names; `names` says of each where it stands first.

    Raises BadDocument where the document has no such source; `kind` is what names it.
    """
    for name, part in names.items():
        if name not in context.members:
            raise BadDocument(
                f"{written.stream.words}: {kind} names {name!r}, which is neither a stream "
                "nor a group of this document",
                part.pointer,
                UNKNOWN_SOURCE,
            )
    return tuple(Input(name, context.members[name]) for name in names)


def own_input(ref: StreamRef, inputs: Iterable[Input]) -> int | None:
    """Return which of the inputs is the stream's own last update, if one is."""
    return next((n for n, each in enumerate(inputs) if each.members == (ref,)), None)
