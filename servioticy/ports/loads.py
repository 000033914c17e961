"""What partitions and components have had to do, as far as it is metered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from servioticy.domain.model import ServiceObjectKey


class PartitionLoad(NamedTuple):
    """Service Objects that are computed in a partition, and microseconds of their work."""

    service_objects: int
    load: int


class Component(NamedTuple):
    """A component that has had something to do."""

    tenant: int
    tenant_name: str
    partition: int
    members: Mapping[str, int]
    """Microseconds of work of each of its Service Objects; empty where they are too many."""
    load: int
    size: int
    """How many Service Objects it has."""
    edges: Sequence[tuple[str, str]]
    """Who reads whom within it."""
    is_settled: bool
    """Whether all that was changed of it is in force: else what it reads may still be to come."""


class Loads(Protocol):
    """Tells what has been metered since a time, in ms, which is the beginning of an hour."""

    def partitions(self, since: int) -> Mapping[int, PartitionLoad]:
        """Return those that have Service Objects. Raises Unavailable."""

    def component_of(self, key: ServiceObjectKey) -> str | None:
        """Return which component a Service Object is in; None: it is gone. Raises Unavailable."""

    def load_of(self, tenant: int, component: str, since: int) -> int:
        """Return microseconds of the work of a tenant's component. Raises Unavailable."""

    def components(self, since: int, most: int) -> Sequence[Component]:
        """Return those that have done most, that first. Raises Unavailable."""
