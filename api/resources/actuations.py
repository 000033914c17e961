"""Actuations: what a Web Object is asked to do, and what it says of it."""

from __future__ import annotations

import uuid
from typing import Any

import orjson
from flask import Blueprint, Response

from api.documents.service_objects import current, to_public
from api.http.answers import answer
from api.http.authentication import needs, service_object
from api.http.bodies import TEXT_TYPES, text_body
from api.http.errors import NotFound, Refused, TooLarge, TooMany
from api.http.queries import integer
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.actuations import (
    KEPT,
    MAX_PARAMETERS,
    MAX_TIMEOUT,
    MOST,
    MOST_OF_TENANT,
    STATES_KEPT,
    SUBMITTED,
    State,
    before,
    description_of,
    said,
    seen,
    timeout_of,
)
from servioticy.ports.statements import Row

MAX_STATUS = 1_000
"""Characters of it."""
STATUS_TYPES = TEXT_TYPES | {"application/json": True}
"""The original took it as JSON by its type, and never as JSON by its content."""


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/actuations` and what is below it."""
    routes = Blueprint("actuations", __name__)
    stored = services.ports.statements("actuations")

    @routes.get("/<service_object>/actuations")
    @needs(Right.READ)
    def actions(**_names: str) -> Response:
        return answer(_actions(services))

    @routes.post("/<service_object>/actuations/<action>")
    @needs(Right.ACTUATE)
    def submit(action: str, **_names: str) -> Response:
        parameters = text_body()
        if len(parameters.encode()) > MAX_PARAMETERS:
            raise TooLarge
        key, id_ = service_object(), uuid.uuid4().hex
        wanted = _named(action, _actions(services))
        row = stored.row(
            "submit",
            id=id_,
            tenant=key.tenant,
            service_object=key.id,
            action=wanted["name"],
            parameters=parameters,
            description=description_of(wanted),
            status=SUBMITTED,
            now=services.now(),
            timeout=integer("timeout", timeout_of(wanted), 1, MAX_TIMEOUT),
            anyway=False,
            failed=False,
            kept=KEPT,
            most=MOST,
            most_of_tenant=MOST_OF_TENANT,
        )
        _check_made(row)
        place = f"{services.base}/{key.id}/actuations/{id_}"
        return answer({"message": "Actuation submitted", "id": id_}, 201, {"Location": place})

    @routes.get("/<service_object>/actuations/<actuation>")
    @needs(Right.ACTUATE)
    def read(actuation: str, **_names: str) -> Response:
        key = service_object()
        row = stored.row("actuation", id=actuation, tenant=key.tenant, service_object=key.id)
        if row is None:
            raise _unknown(actuation)
        name, parameters, status, states, created_at, updated_at, state, times, expires_at = row
        return answer(
            {
                "status": status,
                "updatedAt": updated_at,
                "id": actuation,
                "name": name,
                "parameters": parameters,
                "createdAt": created_at,
                "states": orjson.loads(states),
            }
            | _progress(state, times, expires_at, services.now())
        )

    @routes.put("/<service_object>/actuations/<actuation>")
    @needs(Right.SEND)
    def report(actuation: str, **_names: str) -> Response:
        status, key, now = text_body(STATUS_TYPES), service_object(), services.now()
        if not status:
            raise Refused("No data in the request")
        if len(status) > MAX_STATUS:
            raise TooLarge
        state = said(status)
        values = {
            "tenant": key.tenant,
            "service_object": key.id,
            "kept": STATES_KEPT,
            "state": state.value,
            "before": before(state),
        }
        if not stored.rows("report", id=actuation, status=status, now=now, **values):
            raise _unknown(actuation)
        return answer({"status": status, "updatedAt": now}, 201)

    return routes


def _actions(services: Services) -> list[dict[str, Any]]:
    """Return the actions of the document in force, as it has them."""
    found: list[dict[str, Any]] | None = to_public(current(service_object(), services)).get(
        "actions"
    )
    return found or []


def _named(name: str, actions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the action of that name, whatever its case."""
    for spelled in (str, str.casefold):
        for each in actions:
            if spelled(each["name"]) == spelled(name):
                return each
    raise NotFound(f"This Service Object does not have the action: {name:.200}")


def _check_made(row: Row | None) -> None:
    """Raise NotFound or TooMany unless an actuation was made."""
    is_there, is_full, is_full_for_all, _is_new = row or (False, False, False, False)
    if not is_there:
        raise NotFound("The Service Object was not found.")
    if is_full:
        raise TooMany(f"{MOST} actuations wait for this Service Object already")
    if is_full_for_all:
        raise TooMany(f"{MOST_OF_TENANT} actuations of yours wait already")


def _progress(state: str, times: str, expires_at: int, now: int) -> dict[str, Any]:
    """Return how far it has come, and when."""
    found, told = seen(State(state), expires_at, now), orjson.loads(times)
    if found is State.EXPIRED:
        told[found.value] = expires_at
    return {"state": found.value, "times": told, "expiresAt": expires_at}


def _unknown(actuation: str) -> NotFound:
    return NotFound(f"This Service Object does not have the actuation: {actuation:.200}")
