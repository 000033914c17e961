"""From a wish to a plan: the component as it is in force, and what a backfill of it concerns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    partition: int
    """Where it is computed."""


class Planning:
    """Asks the store what there is. For any thread."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._sql = services.ports.statements("backfills")
        self._last_updates = services.ports.statements("last_updates")

    def concerned(self, wanted: Wanted) -> tuple[Concerned, InForce]:
        """Return what it concerns. Raises Refused, NotFound."""
        found = self._component(wanted)
        return Concerned(found.service_objects, wanted.ref), found

    def outside(self, tenant: int, concerned: Concerned) -> dict[StreamRef, int]:
        """Return whose the streams of others are that it reads. Raises Refused.

        The tenant may read the history of each of them now.
        """
        wanted = concerned.outside
        if not wanted:
            return {}
        rows = self._last_updates.rows(
            "readable",
            tenant=tenant,
            service_objects=[each.service_object for each in wanted],
            streams=[each.stream for each in wanted],
        )
        found = {StreamRef(*row[:2]): row[2] for row in rows}
        for each in wanted:
            if each not in found:
                raise Refused(
                    f"{concerned.reader_of(each)} reads {each}, which is gone, or of which you "
                    "may not read the history"
                )
        return found

    def plan(self, wanted: Wanted, job: str) -> tuple[Concerned, Plan | None]:
        """Begin the job anew and return what it concerns, and what to compute. Raises Refused.

        No plan: it was cancelled. Raises Unavailable while a change, or an update, is under way.
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
        outside = self.outside(wanted.tenant, concerned)
        numbers = self._numbers(wanted.tenant, outside, concerned.streams)
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
            total=self._count(wanted.tenant, outside, numbers, read, span),
            plan=orjson.dumps(written).decode(),
            now=now,
        )
        if row is None:
            return concerned, None
        limits = self._services.settings.limits
        return concerned, Plan(
            caller=wanted.tenant,
            job=job,
            attempt=row[0],
            service_objects=found.service_objects,
            service_object=wanted.service_object,
            stream=wanted.stream,
            numbers=numbers,
            outside=outside,
            partition=found.partition,
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
            for id_, sequence, version, _is_active, _change, document, _partition in rows
        ]
        changes = {row[0]: row[4] for row in rows}
        return InForce(objects, changes, all(row[3] for row in rows), rows[0][6])

    def _numbers(
        self, tenant: int, outside: Mapping[StreamRef, int], streams: Sequence[StreamRef]
    ) -> dict[StreamRef, int]:
        found: dict[StreamRef, int] = {}
        for owner in {tenant, *outside.values()}:
            theirs = [each for each in streams if outside.get(each, tenant) == owner]
            rows = self._sql.rows(
                "streams",
                tenant=owner,
                service_objects=[each.service_object for each in theirs],
                streams=[each.stream for each in theirs],
            )
            found.update({StreamRef(*row[:2]): row[2] for row in rows})
        return found

    def _count(
        self,
        tenant: int,
        outside: Mapping[StreamRef, int],
        numbers: Mapping[StreamRef, int],
        read: Sequence[int],
        span: Span,
    ) -> int:
        """Return how many updates are read. Raises Refused."""
        owners = {numbers[ref]: owner for ref, owner in outside.items() if ref in numbers}
        count = 0
        for owner in {tenant, *owners.values()}:
            count += self._sql.rows(
                "count",
                tenant=owner,
                streams=[each for each in read if owners.get(each, tenant) == owner],
                since=span.reads_since,
                until=span.reads_until,
                most=MOST_READ + 1,
            )[0][0]
        if count > MOST_READ:
            raise Refused(
                f"Its inputs have more than {MOST_READ:,} updates in that span: fill a shorter one"
            )
        return int(count)

    def _room(self, tenant: int) -> int:
        row = self._sql.row("stored_amount", tenant=tenant)
        most = self._services.quotas.most(tenant, STORED_BYTES).most
        return max(0, most - (row[0] if row else 0))
