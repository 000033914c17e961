"""What stands in the log: updates, and whatever changes the meaning of the log.

JSON, one tagged object a record (schemas/log-record.json). A control record takes
effect exactly at its place in its partition.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from servioticy.model import StreamRef


class UpdateRecord(msgspec.Struct, tag="update", tag_field="kind", frozen=True):
    """An accepted Sensor Update. `update` is its compact JSON, untouched."""

    service_object: str
    stream: str
    timestamp: int
    update: msgspec.Raw
    forwarded: tuple[int, int] | None = None
    """Partition and offset it came from, when its component had moved meanwhile."""

    @property
    def origin(self) -> StreamRef:
        """The stream it is an update of."""
        return StreamRef(self.service_object, self.stream)


class DefinitionRecord(msgspec.Struct, tag="definition", tag_field="kind", frozen=True):
    """From here on this version of the Service Object is in force.

    `change` numbers the changes of the platform: a record that comes again, after a later
    one of its Service Object, is told by it and does nothing.
    """

    service_object: str
    version: int
    change: int = 0


class DeletionRecord(msgspec.Struct, tag="deletion", tag_field="kind", frozen=True):
    """From here on the Service Object is gone, with all that is stored of it."""

    service_object: str


class ErasureRecord(msgspec.Struct, tag="erasure", tag_field="kind", frozen=True):
    """What the stream's updates before here were is forgotten; the stream goes on."""

    service_object: str
    stream: str
    change: int = 0


class ReleaseRecord(msgspec.Struct, tag="release", tag_field="kind", frozen=True):
    """From here on these Service Objects are computed in another partition."""

    service_objects: tuple[str, ...]
    to_partition: int


class AcquireRecord(msgspec.Struct, tag="acquire", tag_field="kind", frozen=True):
    """From here on these Service Objects are computed here.

    Valid once the old partition's stored progress has passed its release record.
    """

    service_objects: tuple[str, ...]
    from_partition: int
    release_offset: int


ControlRecord: TypeAlias = (
    DefinitionRecord | DeletionRecord | ErasureRecord | ReleaseRecord | AcquireRecord
)
LogRecord: TypeAlias = UpdateRecord | ControlRecord


class EmittedRecord(msgspec.Struct, frozen=True):
    """A stored update, on its way to subscribers. (stream, timestamp, version) is its id."""

    service_object: str
    stream: str
    tenant: int
    version: int
    timestamp: int
    update: msgspec.Raw


class DeadLetter(msgspec.Struct, frozen=True):
    """A record that can never succeed: where it stood, why, and what it was (as text)."""

    partition: int
    offset: int
    reason: str
    record: str


_records = msgspec.json.Decoder(LogRecord)
_emitted = msgspec.json.Decoder(EmittedRecord)
_encoder = msgspec.json.Encoder()


class UnreadableRecord(Exception):
    """The bytes are not a record of the log; they go to the dead letters."""


def read_record(value: bytes | None) -> LogRecord:
    """Read a record of the log. Raises UnreadableRecord with the reason."""
    try:
        record: LogRecord = _records.decode(value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableRecord(str(error)) from error
    return record


def read_emitted(value: bytes) -> EmittedRecord:
    """Read what the pipeline emitted."""
    return _emitted.decode(value)


def write(record: LogRecord | EmittedRecord | DeadLetter) -> bytes:
    """The record as it stands in its topic."""
    return _encoder.encode(record)
