"""What stands in the log: updates, and whatever changes the meaning of the log.

JSON, one tagged object a record (schemas/log-record.json). A control record takes
effect exactly at its place in its partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import orjson

from servioticy.domain.model import StreamRef
from servioticy.domain.traces import Trace, TraceIfAny

Large: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
"""A timestamp, an offset, the number of a change: bigint in Postgres."""

Small: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""The number of a partition or a version: integer in Postgres."""


Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A step of a path; or an offset, where some below zero stand for what the log has lost
(places.py).
"""


class UpdateRecord(
    msgspec.Struct, tag="update", tag_field="kind", frozen=True, omit_defaults=True
):
    """An accepted Sensor Update. `update` is its compact JSON, untouched."""

    service_object: str
    stream: str
    timestamp: Large
    update: msgspec.Raw
    forwarded: tuple[Small, Large] | None = None
    """Partition and offset it came from, when its component had moved meanwhile."""
    at: Large = 0
    """When it was accepted, in ms since 1970: the log's time at its place. 0: by a release that
    did not say."""
    trace: Trace = ""
    """The trace context that it came with (traces.py); empty: none."""

    @property
    def origin(self) -> StreamRef:
        """The stream it is an update of."""
        return StreamRef(self.service_object, self.stream)


class TickRecord(msgspec.Struct, tag="tick", tag_field="kind", frozen=True):
    """A time has come for which an operator of a composite stream has asked.

    Written by whoever computes the stream, to the log of its partition. It wakes the composite
    for those of these entries of which that is so at its place in the log; so one that comes
    twice, or late, does nothing.
    """

    service_object: str
    stream: str
    timestamp: Large
    """In ms since 1970."""
    keys: Annotated[tuple[bytes, ...], msgspec.Meta(min_length=1, max_length=100)]
    """Of the entries, in the order in which they are due."""

    @property
    def origin(self) -> StreamRef:
        """The stream that is woken."""
        return StreamRef(self.service_object, self.stream)


class AnsweredOutput(msgspec.Struct, frozen=True, array_like=True):
    """An update that a program makes; without a timestamp it has that of what it was asked."""

    timestamp: Large | None
    channels: msgspec.Raw
    """An object: values by the names of channels."""
    stream: str = ""
    """Of which stream of the Service Object; empty: of the one that the program computes."""


class AnsweredEvent(msgspec.Struct, frozen=True, array_like=True):
    """What a program has made of an update that it was asked about."""

    number: Large
    """Of those of the stream that have waited."""
    timestamp: Large
    """The update's."""
    outputs: tuple[AnsweredOutput, ...] = ()
    error: str = ""
    """What is wrong, if so: then nothing was made."""


class AnswerRecord(
    msgspec.Struct, tag="answer", tag_field="kind", frozen=True, omit_defaults=True
):
    """What a tenant's own program has answered, which computes a composite stream.

    Written by whoever computes the stream, to the log of its partition. Each of its events grows a
    tree of its own. It says to what it is the answer: one that comes twice, or was overtaken, or
    is of another version than is in force at its place, does nothing.
    """

    service_object: str
    stream: str
    timestamp: Large
    """When it came, in ms since 1970: the log's time at its place."""
    program: str
    version: Small
    begun: Large
    """Which queue it answers, and from the state that so many answers had left."""
    states: Large
    events: Annotated[tuple[AnsweredEvent, ...], msgspec.Meta(min_length=1, max_length=10_000)]
    state: bytes | None = None
    """What the stream keeps after the last one; unless it `keeps` what it had."""
    keeps: bool = False
    ends: bool = True
    """Whether its last event is that of the whole answer."""
    question: str = ""
    """Which question it answers. No two have the same, whoever has asked."""
    after: str = ""
    """The question behind which that one was asked, if so: from the state that its answer leaves.
    Then it is taken in right behind that answer, or not at all."""
    traces: tuple[TraceIfAny, ...] = ()
    """Of each event the trace context that its update came with; empty: none has one."""
    forgets: bool = False
    """Whether it is no answer: the stream keeps nothing from here on, as its tenant wants it, and
    answers from before then do nothing. Nothing else of it but the time says anything."""

    @property
    def origin(self) -> StreamRef:
        """The stream that it is for."""
        return StreamRef(self.service_object, self.stream)

    def singly(self) -> list[AnswerRecord]:
        """Return the same as a record for each event: the last one has the state."""
        last, replace = len(self.events) - 1, msgspec.structs.replace
        found = []
        for number, each in enumerate(self.events):
            one = replace(self, events=(each,), traces=self.traces[number : number + 1])
            if number < last:
                one = replace(one, state=None, keeps=True, ends=False)
            found.append(one)
        return found


class DefinitionRecord(msgspec.Struct, tag="definition", tag_field="kind", frozen=True):
    """From here on this version of the Service Object is in force.

    `change` numbers the changes of the platform: a record that comes again, after a later
    one of its Service Object, is told by it and does nothing.
    """

    service_object: str
    version: Small
    change: Large = 0


class DeletionRecord(msgspec.Struct, tag="deletion", tag_field="kind", frozen=True):
    """From here on the Service Object is gone, with all that is stored of it."""

    service_object: str


class ErasureRecord(msgspec.Struct, tag="erasure", tag_field="kind", frozen=True):
    """What the stream's updates before here were is forgotten; the stream goes on."""

    service_object: str
    stream: str
    change: Large = 0


class BackfillRecord(msgspec.Struct, tag="backfill", tag_field="kind", frozen=True):
    """From here on a span of a stream, and of what is derived from it, is what a job computed."""

    service_object: str
    job: str


class GrantRecord(msgspec.Struct, tag="grant", tag_field="kind", frozen=True):
    """From here on composites read by this grant of the Service Object's tenant."""

    service_object: str
    grant: str


class RevocationRecord(msgspec.Struct, tag="revocation", tag_field="kind", frozen=True):
    """From here on no composite reads by this grant: it was revoked, or has expired."""

    service_object: str
    grant: str


class ReleaseRecord(msgspec.Struct, tag="release", tag_field="kind", frozen=True):
    """From here on these Service Objects are computed in another partition."""

    service_objects: tuple[str, ...]
    to_partition: Small


class AcquireRecord(msgspec.Struct, tag="acquire", tag_field="kind", frozen=True):
    """From here on these Service Objects are computed here.

    Valid once the old partition's stored progress has passed its release record.
    """

    service_objects: tuple[str, ...]
    from_partition: Small
    release_offset: Large


class Source(NamedTuple):
    """Where in a provider's partition something comes from that crosses a border."""

    partition: Small
    offset: Whole
    part: Small = 0
    """Of what does not fit into one record; each part is taken by itself."""


class ReadingRecord(msgspec.Struct, tag="reading", tag_field="kind", frozen=True):
    """From here on a Service Object of another tenant reads these streams, in that partition.

    These and no others of the provider's that are computed here; none: it reads nothing of it
    any more. Where it read them in another partition before, it has moved. It is about streams
    of one provider. What is too long for one record comes in several, of one `change`.
    """

    reader: str
    tenant: Large
    """The reader's."""
    provider: Large
    to_partition: Small
    sources: tuple[tuple[str, str], ...]
    """Service Object and stream of each."""
    change: Large
    """Numbers the changes of the platform; one that is older than what is known does nothing."""
    ends: bool = True
    """Whether it is the last one of this change: what none of them names is not read any more."""


class LastOutside(msgspec.Struct, frozen=True, array_like=True):
    """A stream of a provider's, and its last update; without a timestamp it has none."""

    service_object: str
    stream: str
    timestamp: Large | None = None
    update: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def ref(self) -> StreamRef:
        """The stream."""
        return StreamRef(self.service_object, self.stream)


class BeginRecord(msgspec.Struct, tag="begin", tag_field="kind", frozen=True):
    """From here on what these streams of a provider get feeds these readers in this partition.

    It has each stream's last update as that stood at its place in the provider's partition. It
    comes again where a stream is erased, a grant is given anew, or a document changes.
    """

    source: Source
    provider: Large
    tenant: Large
    """The readers'."""
    readers: tuple[str, ...]
    """Service Objects."""
    streams: tuple[LastOutside, ...]
    moved_from: Small | None = None
    """The partition in which the readers were fed before, and which sends the rest of that on:
    what they know of the streams moves along with them."""
    forwarded: tuple[Small, Whole] | None = None
    """As of an update; what is below zero has been looked at for repeats."""
    changes: tuple[Large, ...] = ()
    """Of each reader the change by which it reads them; where one has named a stream anew since,
    this is none of its."""


class EndRecord(msgspec.Struct, tag="end", tag_field="kind", frozen=True):
    """From here on nothing of these streams comes to this partition for these readers.

    They may not read them any more, or else they have `moved_to` another partition, which gets
    this record too once all that came before it has been sent on.
    """

    source: Source
    provider: Large
    tenant: Large
    """The readers'."""
    readers: tuple[str, ...]
    streams: tuple[tuple[str, str], ...]
    moved_to: Small | None = None
    forwarded: tuple[Small, Whole] | None = None
    """As of an update."""


class BorderUpdate(msgspec.Struct, frozen=True, array_like=True):
    """An update that crosses a border."""

    service_object: str
    stream: str
    timestamp: Large
    path: tuple[Whole, ...]
    """Through the tree that made it: what it makes here goes on from there."""
    update: msgspec.Raw

    @property
    def origin(self) -> StreamRef:
        """The stream it is an update of."""
        return StreamRef(self.service_object, self.stream)


class NamedReader(msgspec.Struct, frozen=True, array_like=True):
    """A Service Object that a border record is for, and which of its updates, by number."""

    service_object: str
    updates: tuple[Small, ...]


class BorderRecord(
    msgspec.Struct, tag="border", tag_field="kind", frozen=True, omit_defaults=True
):
    """What one tree of a provider made on streams that others read, in the serial order."""

    source: Source
    provider: Large
    updates: tuple[BorderUpdate, ...]
    readers: tuple[NamedReader, ...] = ()
    """Whom it is for; none: all that are fed here."""
    forwarded: tuple[Small, Whole] | None = None
    """As of an update."""
    at: Large = 0
    """The log's time of the provider's tree, as of an update."""
    trace: Trace = ""
    """That of the provider's tree, as of an update."""

    def only_for(self, readers: Mapping[str, Sequence[int]]) -> BorderRecord:
        """Return what these readers have of it: of each the numbers of updates."""
        some = sorted({number for numbers in readers.values() for number in numbers})
        places = {number: place for place, number in enumerate(some)}
        return msgspec.structs.replace(
            self,
            updates=tuple(self.updates[number] for number in some),
            readers=tuple(
                NamedReader(id_, tuple(places[number] for number in numbers))
                for id_, numbers in readers.items()
            ),
        )


ControlRecord: TypeAlias = (
    DefinitionRecord
    | DeletionRecord
    | ErasureRecord
    | BackfillRecord
    | GrantRecord
    | RevocationRecord
    | ReleaseRecord
    | AcquireRecord
    | ReadingRecord
    | BeginRecord
    | EndRecord
)
OwnRecord: TypeAlias = UpdateRecord | TickRecord | AnswerRecord
"""Grows trees of the tenant whose Service Object it names, and of nobody else."""

LogRecord: TypeAlias = OwnRecord | BorderRecord | ControlRecord


class EmittedRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored update, on its way to subscribers. (stream, timestamp, version) is its id."""

    service_object: str
    stream: str
    tenant: int
    version: int
    timestamp: int
    update: msgspec.Raw
    place: tuple[int, ...] | None = None
    """Where in the serial order it was made: offset in the log, depth, path (pipeline/growth.py).

    A step of the path that is `BORDER` or more is a border (borders.py). None where it is emitted
    again: then it is on the disk, and is not computed again.
    """
    trace: Trace = ""
    """The trace context of what it follows from; empty where there is none, or it is emitted
    again."""


class Position(NamedTuple):
    """Where a record stands in the topic `emitted`."""

    partition: int
    offset: int


class ConsumedRecord(NamedTuple):
    """A record that was read from the topic `emitted`, and where it stands there."""

    record: EmittedRecord
    position: Position


class DeadLetter(msgspec.Struct, frozen=True):
    """A record that can never succeed: where it stood in the log, why, and what it was."""

    partition: int
    offset: int
    reason: str
    record: bytes
    """As it came, whatever bytes that is."""
    kind: str = "log"
    """What `record` is: "log", a record of the log; "emitted", an update for subscribers."""
    whole_bytes: int | None = None
    """Where `record` is only the beginning: how many bytes it had."""


NUL = b"\\u0000"
"""The only way in which JSON can have it."""

_records = msgspec.json.Decoder(LogRecord)
_answers = msgspec.json.Decoder(AnswerRecord)
_emitted = msgspec.json.Decoder(EmittedRecord)
_encoder = msgspec.json.Encoder()


class UnreadableRecord(Exception):
    """The bytes are not a record of this topic."""


def read_record(value: bytes | None) -> LogRecord:
    """Read a record of the log. Raises UnreadableRecord with the reason, and nothing else.

    What is accepted Postgres can store: text without NUL, numbers that fit their columns,
    and an update that is a JSON object with no half of a surrogate pair in it.
    """
    record: LogRecord = _decoded(_records, value)
    if NUL in (value or b""):
        _check_names(record)
    for update in _updates(record):
        _check_update(update)
    return record


def _updates(record: LogRecord) -> Iterable[msgspec.Raw]:
    if isinstance(record, UpdateRecord):
        return (record.update,)
    if isinstance(record, BorderRecord):
        return (each.update for each in record.updates)
    if isinstance(record, BeginRecord):
        return (each.update for each in record.streams if each.timestamp is not None)
    if isinstance(record, AnswerRecord):
        return (output.channels for event in record.events for output in event.outputs)
    return ()


def read_answer(value: bytes) -> AnswerRecord:
    """Read an answer again that was a record of the log."""
    answer: AnswerRecord = _answers.decode(value)
    return answer


def read_emitted(value: bytes | None) -> EmittedRecord:
    """Read what the pipeline emitted. Raises UnreadableRecord, and nothing else."""
    record: EmittedRecord = _decoded(_emitted, value)
    _check_update(record.update)
    return record


def _decoded(decoder: msgspec.json.Decoder[Any], value: bytes | None) -> Any:
    try:
        return decoder.decode(value or b"")
    # RecursionError: msgspec skips what it is to leave as it is, level by level.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableRecord(str(error)) from error


def _check_names(record: LogRecord) -> None:
    """Nobody may be asked for by such a name: Postgres takes no NUL in text."""
    waiting: list[Any] = [record]
    while waiting:
        value = waiting.pop()
        if isinstance(value, msgspec.Struct):
            waiting += msgspec.structs.astuple(value)
        elif isinstance(value, tuple):
            waiting += value
        elif isinstance(value, str) and "\0" in value:
            raise UnreadableRecord("there is a NUL in a name")


def _check_update(update: msgspec.Raw) -> None:
    """msgspec does not look into what it leaves untouched."""
    try:
        is_object = isinstance(orjson.loads(memoryview(update)), dict)
    except orjson.JSONDecodeError as error:
        raise UnreadableRecord(f"the update is no JSON: {error}") from error
    if not is_object:
        raise UnreadableRecord("the update is no JSON object")


def narrowed(value: bytes, readers: Mapping[str, Sequence[int]]) -> bytes:
    """Return of a border record, as it stands in the log, what these readers have of it."""
    return _encoder.encode(_records.decode(value).only_for(readers))


def write(record: LogRecord | EmittedRecord) -> bytes:
    """Return the record as it stands in its topic."""
    return _encoder.encode(record)
