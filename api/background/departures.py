"""Deleted tenants go: all of theirs, a piece at a time, and the tenant last.

Service Objects are deleted as their owner would: the log says it, and the pipeline removes at that
place what is stored of them. So nothing is computed any more of what is gone, and after a crash
the next piece is the next one again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from api.services import Services
from servioticy.domain.model import ServiceObjectKey

SERVICE_OBJECTS = 100
"""Deleted at once: whoever else changes something waits for so many."""
ROWS = 1_000
TENANTS = 100
PAUSE_SECONDS = 1.0
"""After a look that found nothing to do: perhaps the pipeline is not done yet."""
FIRST = (
    *("tokens", "members", "console_sessions", "console_sign_ins"),
    *("job_items", "jobs", "dead_deliveries"),
    *("subscriptions", "idempotency", "claims", "claim_codes", "aspects"),
    # Without its workflows no atom is worked on, and none comes in any more.
    *("workflow_versions", "workflows", "atoms", "atom_counts", "workflow_instances"),
)
"""Tables of which a piece goes at a time, each once the one before is empty."""
THEN = ("template_versions", "templates", "operator_versions", "operators")
LAST = (
    *("received_grants", "usage_of_others", "rest_of_service_objects", "aspect_minutes"),
    "audit",
)

log = logging.getLogger("api.background")


class Departures:
    """Removes deleted tenants. For one thread."""

    def __init__(
        self, services: Services, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._services = services
        self._sql = services.ports.statements("departures")
        self._monotonic = monotonic
        self._next = 0.0

    def turn(self) -> bool:
        """Remove a piece of each; False: there is nothing to remove now. Raises Unavailable."""
        if self._monotonic() < self._next:
            return False
        going = [tenant for (tenant,) in self._sql.rows("going", most=TENANTS)]
        done = [self._piece(tenant) for tenant in going]
        if not any(done):
            self._next = self._monotonic() + PAUSE_SECONDS
        return any(done)

    def _piece(self, tenant: int) -> bool:
        """Remove something; False: that is for others to do first."""
        if self._removed(FIRST, tenant) or self._deleted(tenant) or self._removed(THEN, tenant):
            return True
        row = self._sql.row("is_waited_for", tenant=tenant)
        if row is None or row[0]:
            return False
        if not self._removed(LAST, tenant):
            self._sql.rows("tenant", tenant=tenant)
            log.info("tenant_removed", extra={"tenant": tenant})
        return True

    def _removed(self, tables: tuple[str, ...], tenant: int) -> bool:
        return any(self._sql.rows(table, tenant=tenant, most=ROWS) for table in tables)

    def _deleted(self, tenant: int) -> bool:
        """Delete some of its Service Objects; False: there are none."""
        rows = self._sql.rows("service_objects", tenant=tenant, most=SERVICE_OBJECTS)
        keys = [ServiceObjectKey(tenant, id_) for (id_,) in rows]
        if keys:
            self._services.ports.changes.delete_all(keys, self._services.now())
        return bool(keys)
