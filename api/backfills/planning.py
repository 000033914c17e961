"""From a wish to a plan: the component as it is in force, and what a backfill of it concerns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import orjson

from api.backfills.plan import MOST_MADE_BYTES, MOST_OBJECTS, MOST_READ, Plan
from api.backfills.region import Concerned
from api.backfills.span import Span, span_of
from api.services import Services
from servioticy.domain.model import ServiceObject, StreamRef, Timestamp
from servioticy.domain.quotas import STORED_BYTES
from servioticy.errors import Unavailable
from servioticy.refusals import NotFound, Refused


class Wanted(NamedTuple):
    """What a tenant wants to be filled."""

    tenant: int
    service_object: str
    stream: str
    since: Timestamp
    until: Timestamp

    @property
    def ref(self) -> StreamRef:
        """The stream."""
        return StreamRef(self.service_object, self.stream)


class InForce(NamedTuple):
    """A component, as it is in force for the API."""

    service_objects: Sequence[ServiceObject]
    changes: dict[str, int]
    """Of each by which change it is in force for the pipeline."""
    is_settled: bool
    """Whether that is the same version of each."""


class Planning:
    """Asks the store what there is. For any thread."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._sql = services.ports.statements("backfills")

    def concerned(self, wanted: Wanted) -> tuple[Concerned, InForce]:
        """Return what it concerns. Raises Refused, NotFound."""
        found = self._component(wanted)
        return Concerned(found.service_objects, wanted.ref), found

    def plan(self, wanted: Wanted, job: str) -> Plan | None:
        """Begin the job anew and return what to compute. Raises Refused.

        None: it was cancelled. Raises Unavailable while a change, or an update, is under way.
        """
        concerned, found = self.concerned(wanted)
        if not found.is_settled:
            raise Unavailable("a change of the tenant is under way")
        # What is stored from here on these definitions compute: it stays. Before it is looked
        # who waits, and before history is read, so that nothing is between the two.
        progress = {str(partition): at for partition, at in self._sql.rows("progress")}
        if self._sql.rows("waits", tenant=wanted.tenant)[0][0]:
            raise Unavailable("updates of the tenant are still to be computed")
        now = self._services.now()
        span = span_of(wanted.since, wanted.until, concerned.windows.values(), now)
        numbers = self._numbers(wanted.tenant, concerned.streams)
        read = [numbers[each] for each in sorted(concerned.read) if each in numbers]
        computed = [numbers[each] for each in sorted(concerned.computed) if each in numbers]
        owners = {each.service_object for each in concerned.computed}
        changes = {id_: str(found.changes[id_]) for id_ in sorted(owners)}
        written = {
            "objects": changes,
            "computed": computed,
            "read": read,
            "progress": progress,
        }
        row = self._sql.row(
            "begin",
            job=job,
            tenant=wanted.tenant,
            total=self._count(wanted.tenant, read, span),
            plan=orjson.dumps(written).decode(),
            now=now,
        )
        if row is None:
            return None
        limits = self._services.settings.limits
        return Plan(
            caller=wanted.tenant,
            job=job,
            attempt=row[0],
            service_objects=found.service_objects,
            service_object=wanted.service_object,
            stream=wanted.stream,
            numbers=numbers,
            span=span,
            most_bytes=min(MOST_MADE_BYTES, self._room(wanted.tenant)),
            hops=limits.max_hops,
            computations=limits.max_computations,
        )

    def _component(self, wanted: Wanted) -> InForce:
        rows = self._sql.rows(
            "component",
            tenant=wanted.tenant,
            service_object=wanted.service_object,
            limit=MOST_OBJECTS + 1,
        )
        if not rows:
            raise NotFound("The Service Object was not found.")
        if len(rows) > MOST_OBJECTS:
            raise Refused(
                f"More than {MOST_OBJECTS} Service Objects are computed together with it, which "
                "are the most of a backfill"
            )
        understood = self._services.definitions.of
        objects = [
            ServiceObject(
                replace(understood(id_, version, document.encode()), like=None),
                wanted.tenant,
                version,
                sequence,
                {},
                inputs={},
                read_in={},  # as they can be sent to another process
                operator_owners={},
            )
            for id_, sequence, version, _is_active, _change, document in rows
        ]
        return InForce(objects, {row[0]: row[4] for row in rows}, all(row[3] for row in rows))

    def _numbers(self, tenant: int, streams: Sequence[StreamRef]) -> dict[StreamRef, int]:
        rows = self._sql.rows(
            "streams",
            tenant=tenant,
            service_objects=[each.service_object for each in streams],
            streams=[each.stream for each in streams],
        )
        return {StreamRef(*row[:2]): row[2] for row in rows}

    def _count(self, tenant: int, read: Sequence[int], span: Span) -> int:
        """Return how many updates are read. Raises Refused."""
        (count,) = self._sql.rows(
            "count",
            tenant=tenant,
            streams=list(read),
            since=span.reads_since,
            until=span.reads_until,
            most=MOST_READ + 1,
        )[0]
        if count > MOST_READ:
            raise Refused(
                f"Its inputs have more than {MOST_READ:,} updates in that span: fill a shorter one"
            )
        return int(count)

    def _room(self, tenant: int) -> int:
        row = self._sql.row("stored_amount", tenant=tenant)
        most = self._services.quotas.most(tenant, STORED_BYTES).most
        return max(0, most - (row[0] if row else 0))
