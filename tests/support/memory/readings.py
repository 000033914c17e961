"""What the log is told of who reads streams of other tenants, in memory."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from memory.state import ServiceObjectRow, State
from servioticy.domain.model import StreamRef
from servioticy.errors import Unavailable
from servioticy.ports.change_store import Reading

STILL_MOVING = "what this joins is still moving; try again later"


def outside(state: State, reader: str) -> set[StreamRef]:
    """Return the streams of other tenants, not deleted, that its groups read for the API."""
    found = set()
    for each in state.edges:
        if each.reader == reader:
            source = state.service_object(each.source.service_object)
            if source and source.tenant != state.service_objects[reader].tenant:
                found.add(each.source)
    return found


def told(
    state: State,
    reader: str,
    to_partition: int,
    before: Iterable[StreamRef] = (),
    *,
    ends: bool = False,
) -> list[Reading]:
    """Return what it reads from now on, for each provider and partition; it did so `before`."""
    reads = outside(state, reader)
    sources: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for ref in {*reads, *before}:
        source = state.service_objects[ref.service_object]
        named = sources.setdefault((source.route_partition, source.tenant), [])
        if ref in reads and not ends:
            named.append((ref.service_object, ref.stream))
    tenant = state.service_objects[reader].tenant
    found = [
        Reading(reader, tenant, to_partition, provider, partition, tuple(sorted(named)))
        for (partition, provider), named in sources.items()
    ]
    return sorted(found, key=attrgetter("partition", "provider"))


def check_arrived(state: State, row: ServiceObjectRow) -> None:
    """Raises Unavailable where it has not come to where it moved last, with all that it reads.

    Or others of its tenant have not come to where it is: what is for it there may be held.
    """
    for ref in outside(state, row.id):
        known = state.inputs_from_outside.get((row.id, ref))
        if known is None or (
            known.is_open and (known.fed_in != row.route_partition or known.awaits)
        ):
            raise Unavailable(STILL_MOVING)
    for (reader, _ref), known in state.inputs_from_outside.items():
        beside = state.service_objects[reader]
        comes = known.fed_in not in (None, beside.route_partition) or known.awaits
        same = (beside.tenant, beside.route_partition) == (row.tenant, row.route_partition)
        if same and known.is_open and comes:
            raise Unavailable(STILL_MOVING)
