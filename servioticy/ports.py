"""What the programs need from outside, as small protocols. In-memory twins: memory.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from servioticy.messaging.records import DeadLetter, EmittedRecord, LogRecord
from servioticy.model import LastUpdate, ServiceObject, StreamRef, Timestamp


class Address(NamedTuple):
    """Who asks, and what the request names. None where it does not exist."""

    caller: int
    service_object: str | None
    owner: int | None
    public: bool
    version: int
    partition: int
    stream_id: int | None


@dataclass(frozen=True, slots=True)
class Source:
    """A Service Object that a new document wants to subscribe to."""

    id: str
    tenant: int
    public: bool
    component: str
    partition: int
    streams: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the log's meaning: what the log has to be told, in this order.

    `moves` are the Service Objects that leave a partition for the one of the change. A
    definition has a `version`, an erasure a `stream`.
    """

    service_object: str
    version: int
    partition: int
    moves: tuple[tuple[int, tuple[str, ...]], ...] = ()
    kind: Literal["definition", "deletion", "erasure"] = "definition"
    stream: str = ""


@dataclass(frozen=True, slots=True)
class NewServiceObject:
    """What the API has checked and wants kept."""

    id: str
    tenant: int
    public: bool
    document: bytes
    streams: tuple[str, ...]
    group_sources: tuple[tuple[str, StreamRef], ...]
    """(group name, stream it subscribes to)"""
    created_at: int
    custom_fields: bytes | None = None


class Current(NamedTuple):
    """A Service Object as the API has it: its version in force, and what belongs to none.

    `revision` counts its changes of any kind.
    """

    version: int
    revision: int
    document: bytes
    custom_fields: bytes | None
    updated_at: int


class Related(NamedTuple):
    """A Service Object that another one is computed from, or that is computed from it."""

    id: str
    tenant: int
    sequence: int
    version: int


class Subscriber(NamedTuple):
    """A Service Object that subscribes to a stream of another one by a group."""

    id: str
    tenant: int
    stream: str


class Subscribed(NamedTuple):
    """An application's subscription: whose it is, whose the stream, and its document."""

    tenant: int
    owner: int
    document: bytes


class Catalog(Protocol):
    """Tenants and their Service Objects, as the API keeps them."""

    def create_tenant(self, name: str) -> str:
        """Make the tenant unless it exists, and a new token for it, which is returned."""

    def tenant_of(self, token: str) -> int | None:
        """Whose token it is, or None."""

    def address(self, token: str, service_object: str, stream: str | None) -> Address | None:
        """Look up what a request names, or None for an unknown token."""

    def document(self, service_object: str, version: int) -> bytes | None:
        """That version of the document, as it was accepted."""

    def documents(self, versions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], bytes]:
        """The documents of these versions of Service Objects; of those that exist."""

    def ids(self, tenant: int) -> list[str]:
        """The tenant's Service Objects in order of creation."""

    def changing(self) -> AbstractContextManager[None]:
        """Hold the only right to change the stream graph.

        Raises Unavailable where others have held it for too long.
        """

    def sources(self, ids: Iterable[str]) -> dict[str, Source]:
        """Those of the Service Objects that exist."""

    def create(self, new: NewServiceObject, partitions: int) -> Change:
        """Keep it, join its components, and note the change as pending; all or nothing."""

    def current(self, service_object: str) -> Current | None:
        """The Service Object as it is now; None: it does not exist, or not any more."""

    def versions(self, service_object: str) -> list[tuple[int, int]]:
        """Every version with the time it was accepted, oldest first."""

    def customise(
        self, service_object: str, revision: int, custom_fields: bytes | None, now: int
    ) -> bool:
        """Keep other customFields, unless it has changed since that revision."""

    def replace(
        self, new: NewServiceObject, revision: int, version: int | None = None
    ) -> Change | None:
        """Put another document in force: as a new version, or as that earlier one again.

        An earlier one leaves the customFields alone. None where the Service Object has
        changed since that revision: then nothing is kept.
        """

    def delete(self, service_object: str, revision: int | None, now: int) -> Change | None:
        """The Service Object does not exist any more; None as for `replace`.

        Without a revision it is deleted whatever has changed.
        """

    def erase(self, service_object: str, stream: str) -> Change | None:
        """Note that the stored updates of a stream shall go; None: there is no such stream."""

    def subscribers(self, service_object: str, streams: Iterable[str]) -> list[Subscriber]:
        """Which other Service Objects subscribe to these streams of it."""

    def related(self, ids: Iterable[str], *, upstream: bool, most: int) -> list[Related]:
        """These and all they are computed from, or all computed from them; nearest first."""

    def pending(self) -> list[tuple[int, Change]]:
        """Changes that are kept but perhaps not yet in the log, oldest first.

        Their numbers grow with every change of the platform.
        """

    def finish(self, pending: int, change: Change) -> None:
        """The change is in the log: route by it from now on."""

    def subscribe(
        self,
        subscription: str,
        tenant: int,
        stream_id: int,
        callback: str,
        destination: str,
        document: bytes,
        now: int,
    ) -> bool:
        """Keep a subscription; False where the same pubsub one exists already."""

    def subscriptions(self, stream_id: int) -> list[tuple[int, bytes]]:
        """The applications' subscriptions to a stream with their tenants, oldest first."""

    def subscription(self, subscription: str) -> Subscribed | None:
        """An application's subscription, or None."""

    def unsubscribe(self, subscription: str) -> None:
        """Drop a subscription."""


class Labelled(NamedTuple):
    """A stored update, and the version of its Service Object's document that made it."""

    document: bytes
    version: int


class Stored(NamedTuple):
    """An update of a page of the history, and the version that made it."""

    timestamp: Timestamp
    document: bytes
    version: int


class History(Protocol):
    """What the pipeline has stored, for readers."""

    def newest(self, stream_id: int) -> Timestamp | None:
        """The largest timestamp of a stream's updates, or None."""

    def page(
        self, stream_id: int, span: tuple[Timestamp, Timestamp], most_rows: int, most_bytes: int
    ) -> list[Stored]:
        """The first updates with a timestamp within the span, oldest first.

        They end with the one that reaches `most_rows` or `most_bytes`.
        """

    def updates_after(
        self, stream_id: int, after: Timestamp, limit: int, max_bytes: int
    ) -> list[LastUpdate]:
        """The next updates with a larger timestamp, oldest first.

        At most `limit` of them (one or more), and no more than make `max_bytes` of documents
        together; but always one, if there is one.
        """

    def last_update(self, stream_id: int) -> Labelled | None:
        """The stream's last update, or None."""

    def progress(self, partition: int) -> int:
        """The log offset before which everything is stored, or put off."""

    def stored(self, partition: int, tenants: Iterable[int]) -> tuple[int, dict[int, int]]:
        """Progress, and for those of the tenants that have any the first record put off."""

    def backlog(self, partition: int, tenant: int, most: int) -> int:
        """How many records of a tenant wait that have been put off; not counted further than
        `most`."""

    def verdicts(self, stream_id: int) -> list[tuple[str, int, bytes]]:
        """How computations of a composite stream ended: (verdict, count, last one)."""

    def processor_us(self, stream_id: int) -> int:
        """Microseconds of processor time that a composite stream's code has used."""


class Log(Protocol):
    """Appending to the log, and where it ends."""

    def append(self, partition: int, record: LogRecord) -> int:
        """Append and return the offset once it is safe. Raises Unavailable.

        Raises Rejected where the record is too large to be ever in the log.
        """

    def end_offset(self, partition: int) -> int:
        """The offset the next record will get."""

    def partitions(self) -> int:
        """How many partitions there are."""


class StoredUpdate(NamedTuple):
    """A row of the history."""

    tenant: int
    stream_id: int
    timestamp: Timestamp
    document: bytes
    version: int
    offset: int
    position: int


class StoredLast(NamedTuple):
    """The last update of a stream, after a batch; `uses` as JSON (see LastUpdate)."""

    tenant: int
    stream_id: int
    timestamp: Timestamp
    document: bytes
    version: int
    uses: bytes | None = None


class StoredVerdict(NamedTuple):
    """How often computations of a stream ended so in a batch, and the last of them."""

    tenant: int
    stream_id: int
    verdict: str
    times: int
    last: bytes


class Charge(NamedTuple):
    """Processor time, in microseconds, that a composite stream's code has used since."""

    tenant: int
    stream_id: int
    microseconds: int


class PutOff(NamedTuple):
    """A record of the log that is computed later than its place, and whose it is."""

    offset: int
    tenant: int
    service_object: str
    record: bytes
    """as it stands in the log"""


@dataclass(frozen=True, slots=True)
class Batch:
    """All that one transaction stores of a partition."""

    partition: int
    first_offset: int
    next_offset: int
    emitted_offset: int
    updates: Sequence[StoredUpdate] = ()
    lasts: Sequence[StoredLast] = ()
    verdicts: Sequence[StoredVerdict] = ()
    forwarded: Mapping[int, int] = field(default_factory=dict)
    activate: tuple[str, int, int] | None = None
    """(Service Object, version, change) in force from here on, if the change is a later one"""
    delete: str | None = None
    """Service Object that is gone from here on; what is stored of it is left to `purge`"""
    erase: tuple[str, str, int] | None = None
    """(Service Object, stream, change): forget its updates, if the change is a later one; what
    comes is stored under another number (see `component`), and they are left to `purge`"""
    release: tuple[tuple[str, ...], int] | None = None
    """(Service Objects, partition) computed there from here on"""
    put_off: Sequence[PutOff] = ()
    """records of this stretch that are computed later"""
    taken_up: Sequence[int] = ()
    """offsets of records that had been put off; what follows from them is in this batch"""
    emitted_late: Sequence[int] = ()
    """offsets of such records of earlier batches: all that came of them is emitted"""


class Placed(NamedTuple):
    """A Service Object of a component, and who computes it at the stored progress."""

    service_object: ServiceObject | None
    """None while no version is in force yet."""
    id: str
    tenant: int
    owner_partition: int
    deleted: bool = False


class PartitionStore(Protocol):
    """What the pipeline keeps: one transaction a batch, with its progress."""

    def begin(self, partition: int) -> tuple[int, int]:
        """Claim a partition; (next offset, emitted offset), made at zero if new.

        Raises Unavailable while another worker has it.
        """

    def end(self, partition: int) -> None:
        """Give up the claim."""

    def all_progress(self) -> dict[int, int]:
        """The next offset of every partition that has one."""

    def forwarded(self, partition: int) -> dict[int, int]:
        """From each partition, the offset before which forwarded records were taken."""

    def component(self, service_object: str) -> list[Placed]:
        """The Service Objects computed together with this one; empty: it does not exist.

        Their `stream_ids` are the numbers under which updates are stored now. Readers need
        not know them: to a History a stream has the same id as long as it exists.
        """

    def placed(self, service_object: str) -> tuple[int, int] | None:
        """Whose the Service Object is, and its owner partition; None: it does not exist."""

    def last_updates(self, stream_ids: Iterable[int]) -> dict[int, LastUpdate]:
        """The last updates of those of the streams that have one."""

    def store(self, batch: Batch) -> None:
        """Store all or nothing. Raises Fenced where progress is not at the first offset."""

    def purge(self, partition: int, most: int, most_bytes: int) -> int | None:
        """Remove a piece of what was deleted or erased here; whose it was. None: nothing is left.

        Rows that nobody can read any more: at most so many, and no more than take about so
        many bytes and one.
        """

    def charge(self, charges: Sequence[Charge]) -> None:
        """Add to what streams have used; those that are gone are left out."""

    def not_acknowledged(
        self, partition: int, emitted_offset: int, next_offset: int
    ) -> list[EmittedRecord]:
        """What was stored between the two, in the order it was made.

        And what was stored of records that had been put off and is not emitted for certain.
        """

    def waiting(self, partition: int) -> dict[int, int]:
        """How many records wait that have been put off, by tenant."""

    def put_off(self, partition: int, tenant: int, most: int, most_bytes: int) -> list[PutOff]:
        """The tenant's records that were put off, oldest first; one at least if there is any."""

    def taken_up(self, partition: int) -> list[int]:
        """Offsets of records that are computed late and perhaps not all emitted."""


class Output(Protocol):
    """Where the pipeline sends what it stored."""

    acknowledged: int

    def emit(self, next_offset: int, updates: Sequence[EmittedRecord]) -> None:
        """Send what was made from the log before this offset.

        An update that can never be sent counts as sent: it goes to the dead letters.
        """

    def emitted_from(self, next_offset: int) -> list[EmittedRecord]:
        """What has been emitted with a place from this offset of the log on, by anybody."""

    def send_to_log(self, partition: int, record: LogRecord) -> None:
        """Forward a record to another partition. Raises Rejected where it is too large."""

    def bury(self, letter: DeadLetter) -> None:
        """Send a record that can never succeed to the dead letters, cut if it is too large."""

    def poll(self) -> None:
        """Take note of acknowledgements. Raises Unavailable after a refusal."""

    def flush(self) -> None:
        """Wait for the acknowledgement of all that was sent. Raises Unavailable."""
