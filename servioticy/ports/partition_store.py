"""What the pipeline keeps of a partition: one transaction a batch, with its progress."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, Protocol, TypeAlias

from servioticy.domain.model import LastUpdate, ServiceObject, StreamRef, Timestamp
from servioticy.domain.records import EmittedRecord


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


class PutOff(NamedTuple):
    """A record of the log that is computed later than its place, and whose it is."""

    offset: int
    tenant: int
    service_object: str
    record: bytes
    """as it stands in the log"""


class Activate(NamedTuple):
    """A version is in force from here on, if the change is a later one."""

    service_object: str
    version: int
    change: int


class Delete(NamedTuple):
    """A Service Object is gone from here on; what is stored of it is left to `purge`."""

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


Effect: TypeAlias = Activate | Delete | Erase | Allow | Revoke | Release
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
    """records of this stretch that are computed later"""
    taken_up: Sequence[int] = ()
    """offsets of records that had been put off; what follows from them is in this batch"""
    emitted_late: Sequence[int] = ()
    """offsets of such records of earlier batches: all that came of them is emitted"""
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


class PartitionStore(Protocol):
    """What the pipeline keeps: one transaction a batch, with its progress."""

    def begin(self, partition: int) -> tuple[int, int]:
        """Claim a partition; (next offset, emitted offset), made at zero if new.

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
        """Return the components that these Service Objects are of, each once."""

    def service_objects(self, ids: Sequence[str]) -> Iterator[ServiceObject]:
        """Those of them of which a version is in force; each is read when it is asked for.

        Their `stream_ids` are the numbers under which updates are stored now. Readers need
        not know them: to a History a stream has the same id as long as it exists.
        """

    def changed(self, change: Activate) -> ServiceObject | None:
        """The Service Object as this makes it; None where it has been done, or cannot be.

        Its `stream_ids` are left out.
        """

    def owner(self, service_object: str) -> tuple[int, int] | None:
        """Whose the Service Object is, and its owner partition; None: it does not exist."""

    def last_updates(self, stream_ids: Iterable[int]) -> dict[int, LastUpdate]:
        """The last updates of those of the streams that have one, each with the stream's state.

        A stream's last update is the one of the largest timestamp in its history.
        """

    def store(self, batch: Batch) -> Mapping[int, int]:
        """Store all or nothing. Raises Fenced where progress is not at the first offset.

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
        """What was stored between the two, in the order it was made.

        And what was stored of records that had been put off and is not emitted for certain.
        """

    def waiting(self, partition: int) -> dict[int, int]:
        """How many records wait that have been put off, by tenant."""

    def put_off(self, partition: int, tenant: int, most: int, most_bytes: int) -> list[PutOff]:
        """The tenant's records that were put off, oldest first; one at least if there is any."""

    def taken_up(self, partition: int) -> list[int]:
        """Offsets of records that are computed late and perhaps not all emitted."""
