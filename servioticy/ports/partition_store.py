"""What the pipeline keeps of a partition: one transaction a batch, with its progress."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

from servioticy.domain.model import Grant, LastUpdate, ServiceObject, StreamRef, Timestamp
from servioticy.domain.records import EmittedRecord
from servioticy.ports.kept_entries import KeptEntries, StoredEntry


class StoredUpdate(NamedTuple):
    """A row of the history."""

    tenant: int
    stream_id: int
    timestamp: Timestamp
    document: bytes
    version: int
    offset: int
    position: int
    is_new: bool = False
    """Whether it is certain that the stream has no update of this timestamp yet.

    So it is where the timestamp is newer than the stream's last update was. Such rows are
    stored a good deal faster; if it is not so after all, the row overwrites as any other.
    """
    tree: int = 0
    """as of a TreeKey"""


class StoredState(NamedTuple):
    """What a composite stream keeps from one computation to the next (see LastUpdate)."""

    tenant: int
    stream_id: int
    state: bytes


class StoredVerdict(NamedTuple):
    """How often computations of a stream ended so in a batch, and the last of them."""

    tenant: int
    stream_id: int
    verdict: str
    times: int
    last: bytes


UseKey: TypeAlias = tuple[int, StreamRef, int, StreamRef]
"""Whose account something is in, of which stream, and which stream of whom has caused it."""

UNNAMED = StreamRef("", "")
"""What has caused something, where that is the tenant's own, or is not told apart."""


class Use(NamedTuple):
    """What a stream has used since: what was stored of it, and how its computations ended.

    Those that a stream of the provider has woken, and what came of them.
    """

    tenant: int
    stream: StreamRef
    """by name: what was used is to be paid when the stream is gone"""
    provider: int
    source: StreamRef = UNNAMED
    """which of the provider's, where that is another tenant"""
    updates: int = 0
    """that came from outside"""
    rows: int = 0
    bytes: int = 0
    computations: Mapping[str, int] = MappingProxyType({})
    """by verdict"""
    replaced: int = 0
    """bytes of updates that these have taken the place of"""
    microseconds: int = 0
    """of processor time of its code"""


class TreeKey(NamedTuple):
    """Which tree it is: one record of a provider grows a tree for each tenant that reads it."""

    offset: int
    """of the record in the log"""
    tree: int = 0
    """the tenant; 0: of an update or a control record, of which there is one tree"""


class PutOff(NamedTuple):
    """A record of the log that is computed later than its place, and whose it is."""

    offset: int
    tenant: int
    service_object: str
    record: bytes
    """as it stands in the log; of a border record what concerns this tree"""
    tree: int = 0
    """as of a TreeKey"""
    held: bool = False
    """it does not wait for its turn, but until its tenant's last End of a move has come"""
    was_held: bool = False
    """it has, and waits for its turn since: its tenant's own updates may be ahead of it"""

    @property
    def key(self) -> TreeKey:
        """Which of those that are put off it is."""
        return TreeKey(self.offset, self.tree)


class StoredInput(NamedTuple):
    """The last update of a stream of another tenant, as a Service Object that reads it knows it.

    Only where it is read other than as a trigger.
    """

    tenant: int
    """the reader's"""
    reader: str
    source: StreamRef
    timestamp: Timestamp
    document: bytes


class FedReader(NamedTuple):
    """A Service Object to which updates of another tenant's stream come in a partition."""

    reader: str
    tenant: int
    owner_partition: int
    """where it is computed; another one: it has moved, and what comes here is sent on"""


class Channel(NamedTuple):
    """What is known in a partition of the updates of another tenant's stream that come there."""

    marks: Mapping[int, tuple[int, int]]
    """from each partition: offset and part of the last one taken in"""
    readers: tuple[FedReader, ...]
    """in order of creation"""


class OutsideReader(NamedTuple):
    """A Service Object of another tenant that reads a stream, as is known where that is."""

    reader: str
    tenant: int
    source: StreamRef
    partition: int
    """where it is computed"""
    change: int
    """the number of the change by which it reads that"""
    is_open: bool
    """whether it may: nothing is sent to others"""


class Crossing(NamedTuple):
    """A record for other partitions that a transaction has made and that is not there for certain.

    It is sent once all that its tree has emitted is acknowledged.
    """

    offset: int
    """of the record in the log that it was made from"""
    tree: int
    """as of a TreeKey"""
    number: int
    """of several with this key"""
    partitions: tuple[int, ...]
    record: bytes
    """as it is to stand in the log"""

    @property
    def key(self) -> TreeKey:
        """Which tree it was made by."""
        return TreeKey(self.offset, self.tree)


class Activate(NamedTuple):
    """A version is in force from here on, if the change is a later one.

    Of what its groups name, streams of other tenants are inputs from outside: those that it had
    not named before are so from here on, each open if it may be read just now, with the stream's
    last update as it is stored just now where it is `kept`; those that it does not name any more
    are forgotten.
    """

    service_object: str
    version: int
    change: int
    members: tuple[StreamRef, ...] = ()
    """all that its groups name, its own tenant's streams too"""
    kept: tuple[StreamRef, ...] = ()
    """those of them that some composite reads beside another trigger"""


class ActivateAll(NamedTuple):
    """The same of many Service Objects, each once, that neither name others' streams nor did."""

    changes: tuple[Activate, ...]


class Delete(NamedTuple):
    """A Service Object is gone from here on; what is stored of it is left to `purge`.

    So are its inputs from outside, and what others read of it.
    """

    service_object: str


class Erase(NamedTuple):
    """A stream's updates are forgotten, if the change is a later one.

    What comes is stored under another number (see `service_objects`); what there was is left
    to `purge`.
    """

    service_object: str
    stream: str
    change: int


class Allow(NamedTuple):
    """Composites read by this grant from here on, unless its end has been told already."""

    grant: str


class Revoke(NamedTuple):
    """No composite reads by this grant from here on; it is forgotten."""

    grant: str


class Release(NamedTuple):
    """Service Objects are computed in another partition from here on."""

    service_objects: tuple[str, ...]
    to_partition: int


class Read(NamedTuple):
    """A Service Object of another tenant reads these streams from here on, and no others of this
    provider's that are computed in this partition, unless `ends` is false.

    Rows of it with a later change stay as they are.
    """

    reader: str
    provider: int
    change: int
    rows: tuple[OutsideReader, ...]
    ends: bool = True


class BeginInputs(NamedTuple):
    """What comes of these streams feeds these readers from here on, and may be read.

    Only where a reader's version in force names the stream. Their last updates are these. Where
    the readers were fed `moved_from` another partition, they await the End of that from `source`,
    unless it has come already, and what they know stays. Where it was `forwarded` only what they
    know changes, and whether they may read.
    """

    tenant: int
    readers: tuple[str, ...]
    provider: int
    streams: tuple[tuple[StreamRef, Timestamp | None, bytes | None], ...]
    source: tuple[int, int]
    """partition and offset: an older Begin of the same partition changes nothing"""
    moved_from: int | None = None
    forwarded: bool = False
    changes: tuple[int, ...] = ()
    """by which each of the readers reads: a stream that one has named by a later change is not
    begun; of none it is not known"""


class EndInputs(NamedTuple):
    """Nothing of these streams feeds these readers here from now on.

    They may not be read any more, and their last updates are forgotten. Or the readers have
    `moved`: this partition sends nothing on any more, and that is all. Or what another one sent on
    has `arrived`: the readers await it no longer, and what the tenant has held waits for its turn
    from now on, if it awaits nothing else in the partition.
    """

    tenant: int
    readers: tuple[str, ...]
    streams: tuple[StreamRef, ...]
    source: tuple[int, int]
    """as of a Begin; where what was sent on has arrived, that of the Begin that moved them"""
    moved: bool = False
    arrived: bool = False


Effect: TypeAlias = (
    Activate
    | ActivateAll
    | Delete
    | Erase
    | Allow
    | Revoke
    | Release
    | Read
    | BeginInputs
    | EndInputs
)
"""What a control record brings about in the store, together with the progress past it."""


@dataclass(frozen=True, slots=True)
class Batch:
    """All that one transaction stores of a partition."""

    partition: int
    first_offset: int
    next_offset: int
    emitted_offset: int
    updates: Sequence[StoredUpdate] = ()
    states: Sequence[StoredState] = ()
    """as they are after the batch, of those streams that have one"""
    verdicts: Sequence[StoredVerdict] = ()
    forwarded: Mapping[int, int] = field(default_factory=dict)
    effect: Effect | None = None
    """what a control record brings about; then the batch has no updates"""
    put_off: Sequence[PutOff] = ()
    """records of this stretch that are computed later; or that wait already, and are held now"""
    taken_up: Sequence[TreeKey] = ()
    """records that had been put off; what follows from them is in this batch"""
    emitted_late: Sequence[TreeKey] = ()
    """such records of earlier batches: all that came of them is emitted"""
    inputs: Sequence[StoredInput] = ()
    """as they are after the batch"""
    marks: Mapping[tuple[int, StreamRef], tuple[int, int]] = field(default_factory=dict)
    """from a partition, of a stream of another tenant: offset and part of the last one taken in"""
    kept: Sequence[StoredEntry] = ()
    """what composites keep otherwise than before, each key once"""
    crossings: Sequence[Crossing] = ()
    """what this batch sends to other partitions; they are kept until `emitted_offset` has passed
    them or, where they are late, until they are named in `emitted_late`"""
    outside: Sequence[OutsideReader] = ()
    """readers of other tenants that may read from here on, or may not any more"""
    first_tree: int = 0
    """trees of the record at the first offset with smaller numbers were stored before"""
    next_tree: int = 0
    """trees of the record at the next offset with smaller numbers are stored with this"""
    claim: int | None = None
    """by which this is stored beside the other batches: it moves no progress, and asks for none"""


class ComponentMember(NamedTuple):
    """A Service Object of a component, and who computes it at the stored progress."""

    id: str
    tenant: int
    owner_partition: int
    version: int | None
    """in force; None while none is"""
    deleted: bool = False
    size: int = 0
    """bytes of the document in force; none where that is not known"""


class Progress(NamedTuple):
    """How far a partition is stored."""

    next_offset: int
    next_tree: int
    """trees of the record at the next offset with smaller numbers are stored, too"""
    emitted_offset: int
    """all that was made of the log before it is emitted and acknowledged"""


class PartitionStore(KeptEntries, Protocol):
    """What the pipeline keeps: one transaction a batch, with its progress."""

    def begin(self, partition: int) -> Progress:
        """Claim a partition; its progress, made at zero if new.

        Raises Unavailable while another worker has it.
        """

    def claim(self, partition: int) -> int:
        """Return the claim that this thread has begun with. Raises Fenced where it has none."""

    def end(self, partition: int) -> None:
        """Give up the claim."""

    def all_progress(self) -> dict[int, int]:
        """The next offset of every partition that has one."""

    def forwarded(self, partition: int) -> dict[int, int]:
        """From each partition, the offset before which forwarded records were taken."""

    def component(self, service_object: str) -> list[ComponentMember]:
        """The Service Objects computed together with this one; empty: it does not exist."""

    def components(self, ids: Sequence[str]) -> list[list[ComponentMember]]:
        """Return the components that these Service Objects are of, each once.

        A component is of one tenant.
        """

    def service_objects(self, ids: Sequence[str]) -> Iterator[ServiceObject]:
        """Those of them of which a version is in force; each is read when it is asked for.

        Their `stream_ids` are the numbers under which updates are stored now. Readers need
        not know them: to a History a stream has the same id as long as it exists. Their `inputs`
        and `read_in` are as they stand at the stored progress.
        """

    def changed(self, changes: Sequence[Activate]) -> Mapping[str, ServiceObject]:
        """Return the Service Objects as these make them, by their ids.

        Not those of which it has been done, or cannot be; and of many the first, a megabyte of
        documents or one. Their `stream_ids`, `inputs` and `read_in` are left out.
        """

    def owners(self, ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """Return the same of many: whose each is that exists, and its owner partition."""

    def erases(self, change: Erase) -> bool:
        """Whether this is a later erasure than the stream's last one."""

    def closes(self, change: EndInputs) -> Mapping[str, Sequence[StreamRef]]:
        """Return of each reader what it may read until this, which ends it.

        Nothing where it is an End that came late: something later has been heeded before.
        """

    def grant(self, grant: str) -> Grant | None:
        """Return a grant, whether it is in force yet or not; None where it is gone."""

    def owner(self, service_object: str) -> tuple[int, int] | None:
        """Whose the Service Object is, and its owner partition; None: it does not exist."""

    def channels(self, partition: int, streams: Iterable[StreamRef]) -> dict[StreamRef, Channel]:
        """Return who is fed in the partition with these streams of other tenants, and how far.

        Also those that have moved and are still fed here. A stream without readers or marks is
        left out.
        """

    def begun_behind(
        self, readers: Sequence[str], streams: Sequence[StreamRef], place: tuple[int, int]
    ) -> set[tuple[str, StreamRef]]:
        """Which of these readers have begun with which of these streams behind a place of theirs.

        What was made there and is sent on is none of it; not while more of that is awaited.
        """

    def awaiting(self, partition: int) -> dict[int, int]:
        """Which tenants await here what another partition sends on, and how much is held of each.

        What comes to them directly is held until that has ended.
        """

    def last_inputs(
        self, wanted: Iterable[tuple[str, StreamRef]]
    ) -> dict[tuple[str, StreamRef], LastUpdate]:
        """Return what these readers know as the last updates of these streams of other tenants.

        Of those of them that they keep and that have one.
        """

    def outside_readers(self, service_object: str) -> list[OutsideReader]:
        """Return who of other tenants reads its streams, in order of creation."""

    def reading(self, reader: str, provider: int, partition: int) -> list[OutsideReader]:
        """Return what a Service Object reads of a provider's that is computed in a partition."""

    def crossings(self, partition: int) -> list[Crossing]:
        """Return what is not certain to be where it was sent, in the order it was made."""

    def last_updates(self, stream_ids: Iterable[int]) -> dict[int, LastUpdate]:
        """The last updates of those of the streams that have one, each with the stream's state.

        A stream's last update is the one of the largest timestamp in its history.
        """

    def store(self, batch: Batch) -> Mapping[int, int]:
        """Store all or nothing. Raises Fenced where progress is not at the first offset and tree.

        A batch with a claim may be stored in any thread, beside others: it is Fenced where the
        partition is not claimed so any more. Whoever begins a partition waits until nothing is
        being stored by an earlier claim.

        Returns of streams the bytes of updates that are not stored any more, as others of this
        batch have their timestamps.
        """

    def purge(self, partition: int, most: int, most_bytes: int) -> int | None:
        """Remove a piece of what was deleted or erased here; whose it was. None: nothing is left.

        Rows that nobody can read any more: at most so many, and no more than take about so
        many bytes and one.
        """

    def account(self, uses: Sequence[Use]) -> None:
        """Add to the present hour's account, and to the processor time of streams still there.

        Tenants that are gone are left out.
        """

    def used_up(self, most: Mapping[str, int]) -> Mapping[int, str]:
        """Return which tenants have used up one of these quotas, and which one.

        `most` tells of each of `RESTING` what a tenant may have of which nothing else is said.
        """

    def not_acknowledged(
        self, partition: int, emitted_offset: int, next_offset: int
    ) -> list[EmittedRecord]:
        """What was stored from the one up to and with the other, in the order it was made.

        And what was stored of records that had been put off and is not emitted for certain.
        """

    def waiting(self, partition: int) -> dict[int, int]:
        """How many records wait that have been put off, by tenant; not those that are held."""

    def put_off(self, partition: int, tenant: int, most: int, most_bytes: int) -> list[PutOff]:
        """The tenant's records that were put off, oldest first; one at least if there is any.

        Not those that are held.
        """

    def begins_put_off(self, partition: int) -> list[bytes]:
        """Return those of the records that wait by which somebody is fed (BeginRecord)."""

    def taken_up(self, partition: int) -> list[TreeKey]:
        """Which records are computed late and perhaps not all emitted."""
