"""The stream graph as the API knows it: who reads whom, over all tenants.

A graph reaches from tenant to tenant, so nothing here is one tenant's. Whoever asks decides
what of the answer somebody may see (servioticy.domain.access).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from servioticy.domain.access import Granted
from servioticy.domain.model import Grant
from servioticy.ports.service_objects import VersionKey


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A Service Object in the graph: whose it is, where it is computed, which streams it has."""

    id: str
    tenant: int
    granted: Granted
    """what others may do with it"""
    revision: int
    component: str
    partition: int
    streams: tuple[str, ...]
    """those of the version in force for the API"""


class Related(NamedTuple):
    """A Service Object that another one is computed from, or that is computed from it."""

    id: str
    tenant: int
    sequence: int
    version: int

    @property
    def key(self) -> VersionKey:
        """Its version in force."""
        return VersionKey(self.tenant, self.id, self.version)


class Relatives(NamedTuple):
    """Related Service Objects, the nearest first, and those of one distance as created."""

    found: list[Related]
    complete: bool
    """whether these are all"""


class GroupReader(NamedTuple):
    """A Service Object that reads a stream of another one by a group."""

    id: str
    tenant: int
    stream: str


class StreamGraph(Protocol):
    """Reads the graph."""

    def nodes(self, ids: Iterable[str]) -> dict[str, GraphNode]:
        """Return those of the Service Objects that exist, by id."""

    def grants(self, ids: Iterable[str]) -> dict[str, tuple[Grant, ...]]:
        """Return what others are granted of those of these that grant anything.

        Beside what is public.
        """

    def readers(
        self,
        service_object: str,
        streams: Iterable[str],
        *,
        first: int | None = None,
        most: int | None = None,
    ) -> list[GroupReader]:
        """Return which other Service Objects read these streams of it by a group, and may.

        As they were created, those of the tenant `first` before all others; `most` at most.
        """

    def related(self, ids: Iterable[str], *, upstream: bool, most: int) -> Relatives:
        """Return these and all they are computed from, or all computed from them.

        At most `most`, the nearest, and none that is more than a thousand steps away. Of the
        farthest ones it is not said which are left out.
        """
