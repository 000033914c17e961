"""The Actuations in Postgres."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from servioticy.domain.actuations import (
    KEPT,
    MOST,
    MOST_OF_TENANT,
    STATES_KEPT,
    SUBMITTED,
    State,
    before,
    before_others,
    description_of,
    said,
    timeout_of,
)
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.actuations import (
    Actuation,
    ActuationRecord,
    ActuationRequest,
    ActuationSummary,
    CalledBack,
    NewActuation,
    News,
    Submission,
)
from servioticy.storage.database import Database, Row
from servioticy.storage.dead_deliveries import storable
from servioticy.storage.queries import queries


class PostgresActuations:
    """What is queued for devices, and what became of it: Actuations and ActuationRecords."""

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
        if "\0" in key.id + request.action:
            return False
        found = self._database.row(self._sql["document"], _whose(key))
        actions = orjson.loads(found[0]).get("actions") if found is not None else None
        action = next((each for each in actions or () if each["name"] == request.action), None)
        if action is None:
            return False
        parameters = request.parameters.replace("\0", "\ufffd")
        new = NewActuation(request.id, action, parameters, timeout_of(action))
        is_there, *_ = self._queue(key, new, now_ms, anyway=True, refusal=request.refusal)
        return bool(is_there)

    def submit(self, key: ServiceObjectKey, new: NewActuation, now_ms: int) -> Submission:
        """Queue an actuation, unless too much waits."""
        is_there, is_full, is_full_for_tenant, _ = self._queue(key, new, now_ms)
        if not is_there:
            return Submission.UNKNOWN
        if is_full:
            return Submission.FULL
        return Submission.FULL_FOR_TENANT if is_full_for_tenant else Submission.MADE

    def _queue(
        self,
        key: ServiceObjectKey,
        new: NewActuation,
        now_ms: int,
        *,
        anyway: bool = False,
        refusal: str | None = None,
    ) -> Row:
        values = {
            "id": new.id,
            "action": new.action["name"],
            "parameters": new.parameters,
            "description": description_of(new.action),
            "status": SUBMITTED if refusal is None else f"failed: {refusal}",
            "now": now_ms,
            "timeout": new.timeout,
            "anyway": anyway,
            "failed": refusal is not None,
            "kept": KEPT,
            "most": MOST,
            "most_of_tenant": MOST_OF_TENANT,
        }
        return self._database.rows(self._sql["submit"], _whose(key) | values)[0]

    def find(self, key: ServiceObjectKey, id_: str) -> ActuationRecord | None:
        """Return an actuation of this Service Object; None: it has no such."""
        if "\0" in id_:
            return None
        row = self._database.row(self._sql["actuation"], _whose(key) | {"id": id_})
        if row is None:
            return None
        action, parameters, status, reports, created, updated, state, times, expires = row
        states = State(state), orjson.loads(times)
        return ActuationRecord(
            action, parameters, status, orjson.loads(reports), created, updated, *states, expires
        )

    def newest(self, key: ServiceObjectKey, most: int) -> list[ActuationSummary]:
        """Return those of this Service Object that were asked for last, the latest first."""
        rows = self._database.rows(self._sql["newest"], _whose(key) | {"most": most})
        return [
            ActuationSummary(id_, action, said, made, told, State(state), orjson.loads(times), end)
            for id_, action, said, made, told, state, times, end in rows
        ]

    def report(
        self, key: ServiceObjectKey, id_: str, status: str, now_ms: int, *, by_device: bool
    ) -> bool:
        """Note what is said of one. False: the Service Object has no such."""
        if "\0" in id_ + status:
            return False
        state = said(status)
        states = before(state) if by_device else before_others(state)
        return self._report(key, id_, status, state, states, now_ms)

    def _report(
        self,
        key: ServiceObjectKey,
        id_: str,
        status: str,
        state: State,
        states: Sequence[str],
        now_ms: int,
    ) -> bool:
        """Note what is said, and the state where it is in one of these."""
        values = {
            "id": id_,
            "status": status,
            "state": state.value,
            "before": list(states),
            "now": now_ms,
            "kept": STATES_KEPT,
        }
        return bool(self._database.rows(self._sql["report"], _whose(key) | values))

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
        row = self._database.row(self._sql["callback"], _whose(key))
        return None if row is None else CalledBack(orjson.loads(row[0]), orjson.loads(row[1]))

    def exchange_secrets(
        self,
        key: ServiceObjectKey,
        before: Sequence[Mapping[str, Any]],
        after: Sequence[Mapping[str, Any]],
    ) -> bool:
        """Let others sign what it is called with. False: those are not in force any more."""
        values = {"before": _json(before), "after": _json(after)}
        return bool(self._database.rows(self._sql["exchange_secrets"], _whose(key) | values))

    def failed(self, key: ServiceObjectKey, id_: str, reason: str, now_ms: int) -> None:
        """Note that this one has failed, unless it has ended already, and say why."""
        said_of_it, states = f"failed: {storable(reason)}", before(State.FAILED)
        self._report(key, id_, said_of_it, State.FAILED, states, now_ms)

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


def _whose(key: ServiceObjectKey) -> dict[str, Any]:
    return {"tenant": key.tenant, "service_object": key.id}


def _json(content: Sequence[Mapping[str, Any]]) -> str:
    return orjson.dumps(content).decode()
