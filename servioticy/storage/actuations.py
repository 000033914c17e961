"""The Actuations in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import orjson

from servioticy.domain.actuations import (
    KEPT,
    MOST,
    MOST_OF_TENANT,
    STATES_KEPT,
    SUBMITTED,
    State,
    before,
    description_of,
    timeout_of,
)
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.actuations import Actuation, ActuationRequest, CalledBack, News
from servioticy.storage.database import Database
from servioticy.storage.dead_deliveries import storable
from servioticy.storage.queries import queries


class PostgresActuations:
    """What is queued for devices."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = queries("actuations")

    def news(self, since: str | None, asked: Iterable[ServiceObjectKey]) -> News:
        """Return those for which something is queued since then, or waits and is asked about."""
        keys = [each for each in asked if "\0" not in each.id]
        values = {
            "since": since,
            "tenants": [each.tenant for each in keys],
            "service_objects": [each.id for each in keys],
        }
        rows = self._database.rows(self._sql["news"], values)
        found = {
            ServiceObjectKey(tenant, id_): calls
            for _, tenant, id_, calls in rows
            if id_ is not None
        }
        return News(rows[0][0], list(found), [key for key, calls in found.items() if calls])

    def ask(self, key: ServiceObjectKey, request: ActuationRequest, now_ms: int) -> bool:
        """Make an actuation once; False: there is no such action of this tenant's."""
        place = {"tenant": key.tenant, "service_object": key.id}
        if "\0" in key.id + request.action:
            return False
        found = self._database.row(self._sql["document"], place)
        actions = orjson.loads(found[0]).get("actions") if found is not None else None
        action = next((each for each in actions or () if each["name"] == request.action), None)
        if action is None:
            return False
        values = {
            "id": request.id,
            "action": request.action,
            "parameters": request.parameters.replace("\0", "\ufffd"),
            "description": description_of(action),
            "status": SUBMITTED if request.refusal is None else f"failed: {request.refusal}",
            "now": now_ms,
            "timeout": timeout_of(action),
            "anyway": True,
            "failed": request.refusal is not None,
            "kept": KEPT,
            "most": MOST,
            "most_of_tenant": MOST_OF_TENANT,
        }
        return bool(self._database.rows(self._sql["submit"], place | values)[0][0])

    def waiting(
        self, tenant: int, service_objects: Sequence[str], most: int, now_ms: int
    ) -> Mapping[str, Sequence[Actuation]]:
        """Return the first ones that devices have still to get, each its own in order."""
        asked = [each for each in service_objects if "\0" not in each]
        values = {"tenant": tenant, "service_objects": asked, "most": most, "now": now_ms}
        found: dict[str, list[Actuation]] = {}
        for service_object, id_, parameters, description, created, expires in self._database.rows(
            self._sql["waiting"], values
        ):
            actuation = Actuation(id_, parameters, description.encode(), created, expires)
            found.setdefault(service_object, []).append(actuation)
        return found

    def waiting_for(self, tenant: int, now_ms: int) -> list[ServiceObjectKey]:
        """Return the devices of a tenant that have still something to get."""
        values = {"tenant": tenant, "now": now_ms}
        rows = self._database.rows(self._sql["waiting_for"], values)
        return [ServiceObjectKey(tenant, id_) for (id_,) in rows]

    def calling(self, now_ms: int) -> list[ServiceObjectKey]:
        """Return all for which something waits that somebody is to be called with."""
        return [
            ServiceObjectKey(*row)
            for row in self._database.rows(self._sql["calling"], {"now": now_ms})
        ]

    def callback(self, key: ServiceObjectKey) -> CalledBack | None:
        """Return whom the Service Object calls now; None: nobody."""
        values = {"tenant": key.tenant, "service_object": key.id}
        row = self._database.row(self._sql["callback"], values)
        return None if row is None else CalledBack(orjson.loads(row[0]), orjson.loads(row[1]))

    def failed(self, key: ServiceObjectKey, id_: str, reason: str, now_ms: int) -> None:
        """Note that this one has failed, unless it has ended already, and say why."""
        values = {
            "tenant": key.tenant,
            "service_object": key.id,
            "id": id_,
            "status": f"failed: {storable(reason)}",
            "state": State.FAILED.value,
            "before": before(State.FAILED),
            "now": now_ms,
            "kept": STATES_KEPT,
        }
        self._database.rows(self._sql["report"], values)

    def moved(self, tenant: int, ids: Sequence[str], state: State, now_ms: int) -> None:
        """Note that these have come to a state, where they had not come so far."""
        values = {
            "tenant": tenant,
            "ids": list(ids),
            "state": state.value,
            "before": before(state),
            "now": now_ms,
        }
        self._database.rows(self._sql["move"], values)
