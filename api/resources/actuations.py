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
from api.http.errors import NotFound, Refused, TooLarge
from api.services import Services
from servioticy.domain.access import Right

SUBMITTED = "Submitted"
KEPT = 1_000
"""Actuations of a Service Object, the newest ones."""
STATES_KEPT = 100
"""Of one actuation, the newest ones."""
MAX_PARAMETERS = 16_384
"""Bytes of them."""
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
        submitted = stored.rows(
            "submit",
            id=id_,
            tenant=key.tenant,
            service_object=key.id,
            action=_named(action, _actions(services)),
            parameters=parameters,
            status=SUBMITTED,
            now=services.now(),
            kept=KEPT,
        )
        if not submitted:
            raise NotFound("The Service Object was not found.")
        place = f"{services.base}/{key.id}/actuations/{id_}"
        return answer({"message": "Actuation submitted", "id": id_}, 201, {"Location": place})

    @routes.get("/<service_object>/actuations/<actuation>")
    @needs(Right.ACTUATE)
    def read(actuation: str, **_names: str) -> Response:
        key = service_object()
        row = stored.row("actuation", id=actuation, tenant=key.tenant, service_object=key.id)
        if row is None:
            raise _unknown(actuation)
        name, parameters, status, states, created_at, updated_at = row
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
        )

    @routes.put("/<service_object>/actuations/<actuation>")
    @needs(Right.SEND)
    def report(actuation: str, **_names: str) -> Response:
        status, key, now = text_body(STATUS_TYPES), service_object(), services.now()
        if not status:
            raise Refused("No data in the request")
        if len(status) > MAX_STATUS:
            raise TooLarge
        values = {"tenant": key.tenant, "service_object": key.id, "kept": STATES_KEPT}
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


def _named(name: str, actions: list[dict[str, Any]]) -> str:
    """Return the action of that name, whatever its case, as the document spells it."""
    names: list[str] = [each["name"] for each in actions]
    if name in names:
        return name
    for each in names:
        if each.casefold() == name.casefold():
            return each
    raise NotFound(f"This Service Object does not have the action: {name:.200}")


def _unknown(actuation: str) -> NotFound:
    return NotFound(f"This Service Object does not have the actuation: {actuation:.200}")
