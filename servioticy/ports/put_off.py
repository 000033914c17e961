"""Records of the log that are computed later than their place, and which tree each of them is."""

from __future__ import annotations

from typing import NamedTuple, Protocol


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


class PutOffRecords(Protocol):
    """The part of the PartitionStore that keeps what is computed later."""

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
