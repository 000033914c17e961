"""The nouns of the platform, frozen. Words as in docs/glossary.md."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from servioticy.domain.options import DEFAULTS, Options
from servioticy.domain.windows.model import Silence, Window

NOTHING: Mapping[Any, Any] = MappingProxyType({})

Timestamp: TypeAlias = int
"""A Sensor Update's `lastUpdate`: an integer in the device's own unit, never rescaled."""

Dialect: TypeAlias = Literal["expression", "function"]
"""How a document's JavaScript is written: templates (0.1.0) or functions (0.2.0)."""


JAVASCRIPT = "javascript"
"""The evaluator of whatever names no other one."""


class StreamRef(NamedTuple):
    """Where an update comes from: a stream of a Service Object."""

    service_object: str
    stream: str

    def __str__(self) -> str:
        return f"{self.service_object}/{self.stream}"


class InputRef(StreamRef):
    """A stream of another tenant as one that reads it knows it: an *input from outside*.

    What one of them knows of it is its own affair: it may be older than what another one does.
    """

    reader: int
    """The reader's sequence."""

    def __new__(cls, source: StreamRef, reader: int) -> InputRef:
        """Return the stream as this reader knows it."""
        made = super().__new__(cls, *source)
        made.reader = reader
        return made

    def __eq__(self, other: object) -> bool:
        """Tell whether it is the same stream for the same reader."""
        return (
            isinstance(other, InputRef)
            and self.reader == other.reader
            and tuple(self) == tuple(other)
        )

    def __ne__(self, other: object) -> bool:
        """Tell whether it is not."""
        return not self == other

    def __hash__(self) -> int:
        """Return what equal ones have in common."""
        return hash((*self, self.reader))

    @property
    def source(self) -> StreamRef:
        """The stream itself."""
        return StreamRef(*self)


class ClockRef(StreamRef):
    """The times that a composite stream has set itself, as a stream that wakes it.

    It has no updates that are stored: a time comes as a record of the log (TickRecord).
    """

    def __eq__(self, other: object) -> bool:
        """Tell whether it is the clock of the same stream."""
        return isinstance(other, ClockRef) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        """Tell whether it is not."""
        return not self == other

    def __hash__(self) -> int:
        """Return what equal ones have in common."""
        return hash((*self, ClockRef))


class WindowRef(StreamRef):
    """The windows of a composite stream, as a stream that it reads; or what brings it its inputs
    as they were, where one of them is revised.

    They have no updates that are stored: what comes of one is the composite's.
    """

    def __eq__(self, other: object) -> bool:
        """Tell whether it is those of the same stream."""
        return isinstance(other, WindowRef) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        """Tell whether it is not."""
        return not self == other

    def __hash__(self) -> int:
        """Return what equal ones have in common."""
        return hash((*self, WindowRef))


class ServiceObjectKey(NamedTuple):
    """A Service Object in the store: whose it is, and its id."""

    tenant: int
    id: str


class StreamKey(NamedTuple):
    """A stream in the store: whose it is, and its number there."""

    tenant: int
    stream_id: int


@dataclass(frozen=True, slots=True)
class Channel:
    """One dimension of a stream. `code` is its `current-value`, None in a simple stream."""

    name: str
    type: str
    unit: str | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """A JSONPath into an input, written `{$source.path}` in an expression.

    `path` holds the keys and indexes of a plain path, or else selectors; both as the
    sandbox knows them.
    """

    source: str
    expression: str
    path: tuple[str | int | tuple[Any, ...], ...]

    @property
    def plain(self) -> bool:
        """Whether it leads to one place at most."""
        return not any(isinstance(each, tuple) for each in self.path)


@dataclass(frozen=True, slots=True)
class Input:
    """What a composite stream reads under one name: a stream, or a group of them."""

    name: str
    members: tuple[StreamRef, ...]


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream as its document declares it; `composite` says how it is computed, if it is."""

    ref: StreamRef
    channels: tuple[Channel, ...]
    composite: Composite | None = None

    def channel(self, name: str) -> Channel | None:
        """The channel of that name, or None."""
        return next((each for each in self.channels if each.name == name), None)


@dataclass(frozen=True, slots=True)
class Composite:
    """How a stream is computed from others.

    `inputs` are all streams and groups read, in the order the document names them; each
    of them triggers, except the stream's own last update, which is `inputs[own]`.
    `channels` hold code in which the n-th of `references` is written as variable `$n`.
    """

    dialect: Dialect
    inputs: tuple[Input, ...]
    channels: tuple[Channel, ...]
    own: int | None = None
    pre_filter: str | None = None
    post_filter: str | None = None
    references: tuple[Reference, ...] = ()
    options: Options = DEFAULTS
    evaluator: str = JAVASCRIPT
    """Who computes it: the name of one of the pipeline's evaluators."""
    operator: Hashable = None
    """What that runs in place of JavaScript, one computation at a time: whatever it understands.
    None: the code of channels and filters."""
    window: Window | Silence | None = None
    """Its code reads windows of its inputs, or of their silence, instead of their last updates."""
    windowed: bool = False
    """Its inputs are windows, all of which come with what wakes it."""
    looks_at_others: bool = False
    """Of one that is nobody's but another composite's: it looks at last updates all the same."""
    revises: bool = False
    """Some of these have not ended, or are told again: what comes of them are revisions."""
    follows: bool = False
    """It is computed again where an input is revised."""


@dataclass(frozen=True, slots=True)
class Group:
    """A named set of Service Objects whose streams of one name are read together."""

    name: str
    service_objects: tuple[str, ...]
    stream: str


@dataclass(frozen=True, slots=True)
class Definition:
    """One version of a Service Object's document, understood."""

    id: str
    streams: tuple[Stream, ...]
    groups: tuple[Group, ...]
    public: bool
    like: Definition | None = field(default=None, compare=False, repr=False)
    """Another Service Object's, of which this is a copy: they differ in nothing but ids."""

    def stream(self, name: str) -> Stream | None:
        """The stream of that name, or None."""
        return next((each for each in self.streams if each.ref.stream == name), None)


class Grant(NamedTuple):
    """What a tenant lets others do with a Service Object of its own."""

    id: str
    grantee: int | None
    """None: everybody."""
    stream: str | None = None
    """None: each of its streams, and its document."""
    derived_only: bool = False
    """Composites may read it, and nobody gets its updates."""


class InputFromOutside(NamedTuple):
    """A stream of another tenant, as one Service Object that reads it knows it."""

    provider: int
    """Whose stream it is."""
    is_open: bool
    """Whether it may be read."""


@dataclass(frozen=True, slots=True)
class ServiceObject:
    """A definition in force: whose it is, since when, and where its updates are computed."""

    definition: Definition
    tenant: int
    version: int
    sequence: int
    """Order of creation over the platform: the order of its subscriptions."""
    stream_ids: dict[str, int]
    """Under which number the updates of each stream are stored."""
    grants: tuple[Grant, ...] = ()
    """What others are granted, beside what is public."""
    inputs: Mapping[StreamRef, InputFromOutside] = field(default_factory=lambda: NOTHING)
    """What its groups name of other tenants, as far as it is known at this place in the log."""
    read_in: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: NOTHING)
    """Of each of its streams that others read, the partitions in which they do."""
    operator_owners: Mapping[str, int] = field(default_factory=dict)
    """Whom it means by the names of others whose programs it names, since it was accepted."""

    @property
    def id(self) -> str:
        """The Service Object's id."""
        return self.definition.id


class LastUpdate(NamedTuple):
    """The newest update of a stream, as readers and computations see it."""

    timestamp: Timestamp
    document: bytes
    state: bytes | None = None
    """What its stream keeps from one computation to the next, as JSON; none keeps nothing."""


class SensorUpdate(NamedTuple):
    """An update of a stream: compact one-line JSON, and the two things looked up in it."""

    origin: StreamRef
    timestamp: Timestamp
    document: bytes
