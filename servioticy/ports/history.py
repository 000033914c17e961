"""What the pipeline has stored, for readers. A stream is named with the tenant whose it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from servioticy.domain.model import (
    LastUpdate,
    ServiceObjectKey,
    StreamKey,
    StreamRef,
    Timestamp,
)


class VersionedUpdate(NamedTuple):
    """A stored update, and the version of its Service Object's document that made it."""

    timestamp: Timestamp
    document: bytes
    version: int


class OutsideInput(NamedTuple):
    """A stream of another tenant that a Service Object reads, as it is known where that is."""

    source: StreamRef
    is_open: bool
    """whether it may be read"""
    has_begun: bool
    """whether updates of it come; until then it is as it was stored"""
    is_moving: bool
    """whether updates wait for what another partition sends on"""
    since: int
    """in ms: since when it has been read, or ended, or named by the document"""


class History(Protocol):
    """Stored updates, how computations ended, and how far the log is stored."""

    def newest(self, stream: StreamKey) -> Timestamp | None:
        """Return the largest timestamp of a stream's updates, or None."""

    def page(
        self,
        stream: StreamKey,
        span: tuple[Timestamp, Timestamp],
        most_rows: int,
        most_bytes: int,
        *,
        newest_first: bool = False,
    ) -> list[VersionedUpdate]:
        """Return the first updates with a timestamp within the span, oldest first, or newest.

        They end with the one that reaches `most_rows` or `most_bytes`.
        """

    def updates_after(
        self, stream: StreamKey, after: Timestamp, limit: int, max_bytes: int
    ) -> list[LastUpdate]:
        """Return the next updates with a larger timestamp, oldest first.

        At most `limit` of them (one or more), and no more than make `max_bytes` of documents
        together; but always one, if there is one.
        """

    def last_update(self, stream: StreamKey) -> VersionedUpdate | None:
        """Return the stream's last update, or None."""

    def progress(self, partition: int) -> int:
        """Return the log offset before which everything is stored, or put off."""

    def stored(self, partition: int, tenants: Iterable[int]) -> tuple[int, dict[int, int]]:
        """Progress, and for those of the tenants that have any the first record put off."""

    def put_off(self, partition: int, tenant: int, most: int) -> int:
        """Return how many records of a tenant have been put off and wait, at most `most`."""

    def held(self, partition: int, tenant: int, most: int) -> int:
        """Return how many more wait until all has come that another partition sends on."""

    def inputs_from_outside(self, reader: ServiceObjectKey) -> list[OutsideInput]:
        """Return what a Service Object reads of other tenants, sorted by name.

        As it stands at the stored progress of where it is computed.
        """

    def kept(self, stream: StreamKey, key: bytes) -> bytes | None:
        """Return what a composite stream keeps under a key, if anything."""

    def verdicts(self, stream: StreamKey) -> list[tuple[str, int, bytes]]:
        """Return how computations of a composite stream ended: (verdict, count, last one)."""

    def processor_us(self, stream: StreamKey) -> int:
        """Return the microseconds of processor time that a composite stream's code has used."""
