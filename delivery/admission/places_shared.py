"""How many connections a tenant has at other processes, which count for its quota as well.

Each process tells the others what has changed, twice a second. What those of a process have that
has gone is forgotten when it is seen that its connection to Postgres has.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping

from delivery.admission.owner_semaphore import OwnerSemaphore
from delivery.peering import Peering
from servioticy.errors import Rejected
from servioticy.ports.peers import Row, Told

TELL_SECONDS = 0.5
"""Between two tellings; others know then within a second."""

log = logging.getLogger("servioticy.delivery")


class SharedPlaces:
    """Keeps to the protocol `Part`, for places of a kind each, by name."""

    kind = "places"

    def __init__(self, peering: Peering, places: Mapping[str, OwnerSemaphore]) -> None:
        self._peering = peering
        self._places = places
        self._told: dict[str, dict[int, int]] = {name: {} for name in places}
        self._others: defaultdict[int, dict[tuple[str, int], int]] = defaultdict(dict)
        """Of each other process, how many places of which tenant are taken there."""
        self._is_all_new = False
        peering.add(self)

    def start(self) -> None:
        """Tell from now on."""
        self._peering.run(self._tell_and_rest)

    def came(self) -> None:
        """Tell everything again: others have forgotten it, or will."""
        self._is_all_new = True

    def other_came(self, process: int) -> None:
        """Tell everything again, and forget what that one told before."""
        self._is_all_new = True
        self._forget(process)

    def heard(self, told: Told) -> None:
        """Count what another has."""
        of_it = self._others[told.process]
        for name, tenant, count in told.rows:
            key = str(name), int(tenant)
            of_it[key] = int(count)
            if not of_it[key]:
                del of_it[key]
            self._count(*key)

    def are_there(self, others: frozenset[int]) -> None:
        """Forget those that have gone."""
        for process in self._others.keys() - others:
            self._forget(process)

    async def tell(self) -> None:
        """Tell once what has changed. Raises Unavailable, Rejected."""
        if not self._peering.others:
            return
        is_all_new, self._is_all_new = self._is_all_new, False
        now = {name: places.in_use() for name, places in self._places.items()}
        rows: list[Row] = [
            (name, tenant, now[name].get(tenant, 0))
            for name in now
            for tenant in sorted(now[name].keys() | self._told[name].keys())
            if is_all_new or now[name].get(tenant) != self._told[name].get(tenant)
        ]
        try:
            if rows:
                await self._peering.tell(self.kind, rows)
        except BaseException:
            self._is_all_new = self._is_all_new or is_all_new
            raise
        self._told = now

    async def _tell_and_rest(self) -> None:
        await asyncio.sleep(TELL_SECONDS)
        try:
            await self.tell()
        except Rejected as error:
            log.warning("places_not_shared", extra={"why": str(error)})

    def _forget(self, process: int) -> None:
        for key in self._others.pop(process, {}):
            self._count(*key)

    def _count(self, name: str, tenant: int) -> None:
        places = self._places.get(name)
        if places is None:
            return  # another release counts something else, too
        count = sum(each.get((name, tenant), 0) for each in self._others.values())
        if count:
            places.elsewhere[tenant] = count
        else:
            places.elsewhere.pop(tenant, None)  # tenants come and go
