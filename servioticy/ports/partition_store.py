"""What the pipeline keeps of a partition: one transaction a batch, with its progress."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from servioticy.domain.model import Grant, LastUpdate, ServiceObject, StreamRef
from servioticy.domain.pauses import Paused
from servioticy.domain.records import EmittedRecord
from servioticy.ports.accounts import StreamAccounts
from servioticy.ports.batches import Batch
from servioticy.ports.borders import Borders
from servioticy.ports.effects import Activate, EndInputs, Erase
from servioticy.ports.expiry import Expiry
from servioticy.ports.kept_entries import KeptEntries
from servioticy.ports.past import PastUpdates
from servioticy.ports.put_off import PutOffRecords

ANY_SIZE = 1 << 62
"""Of documents, in bytes."""

UNDERSTOOD_AT_ONCE = 16 * 1024
"""Bytes of a document that is understood without a pause: a few milliseconds."""


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


class PartitionStore(
    Borders, Expiry, KeptEntries, PastUpdates, PutOffRecords, StreamAccounts, Protocol
):
    """What the pipeline keeps: one transaction a batch, with its progress.

    Who needs only a part asks for that.
    """

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

    def forget_parsed(self, seconds: float) -> int:
        """Forget what definitions mean that were not read for so long; return how many.

        Each is understood anew when it is read again.
        """

    def changed(
        self, changes: Sequence[Activate], most_bytes: int = ANY_SIZE
    ) -> Mapping[str, ServiceObject]:
        """Return the Service Objects as these make them, by their ids.

        Not those of which it has been done, or cannot be; and of many the first, as far as their
        documents fit. Their `stream_ids`, `inputs` and `read_in` are left out.
        """

    def understanding(self, change: Activate) -> Paused[object] | None:
        """Return the work to understand what this makes, before it is asked for.

        None: it is small, understood already, or there is nothing to be made.
        """

    def swapped(self, job: str, *, at_once: bool) -> Paused[None]:
        """Return the work to have a backfill take its place, if that still stands.

        It does where definitions are as they were when it read history, and streams are stored
        as they were. Where not, the job is to be done again, or has failed. Until the work has
        come to its end nothing of it is seen, and nothing is left where it is given up: once it
        has, to do it again changes nothing. `at_once` somebody waits for the end: then a large
        one is put back, to be computed anew. Raises Unavailable.
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
        batch have their timestamps, or take them back. What is kept of these, as it is computed
        from, is taken off: where it is more than what has gone it is less than nothing.
        """

    def purge(self, partition: int, most: int, most_bytes: int) -> int | None:
        """Remove a piece of what was deleted or erased here; whose it was. None: nothing is left.

        Rows that nobody can read any more: at most so many, and no more than take about so
        many bytes and one.
        """

    def not_acknowledged(
        self, partition: int, emitted_offset: int, next_offset: int
    ) -> list[EmittedRecord]:
        """What was stored from the one up to and with the other, in the order it was made.

        And what was stored of records that had been put off and is not emitted for certain.
        """
