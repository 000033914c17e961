"""Actuations: what a Web Object is asked to do, and what it says of it."""

from __future__ import annotations

import uuid
from typing import Any

from flask import Blueprint, Response

from api.documents.service_objects import current, to_public
from api.http.answers import answer
from api.http.authentication import is_device, needs, service_object
from api.http.bodies import TEXT_TYPES, text_body
from api.http.queries import integer
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.actuations import (
    MAX_PARAMETERS,
    MAX_TIMEOUT,
    MOST,
    MOST_OF_TENANT,
    State,
    seen,
    timeout_of,
)
from servioticy.ports.actuations import (
    ActuationRecord,
    ActuationSummary,
    NewActuation,
    Submission,
)
from servioticy.refusals import NotFound, Refused, TooLarge, TooMany

MAX_STATUS = 1_000
"""Characters of it."""
LISTED, MOST_LISTED = 20, 100
STATUS_TYPES = TEXT_TYPES | {"application/json": True}
"""The original took it as JSON by its type, and never as JSON by its content."""


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/actuations` and what is below it."""
    routes = Blueprint("actuations", __name__)
    stored = services.ports.actuations

    @routes.get("/<service_object>/actuations")
    @needs(Right.READ)
    def actions(**_names: str) -> Response:
        return answer(_actions(services))

    @routes.get("/<service_object>/actuations/newest")
    @needs(Right.ACTUATE)
    def newest(**_names: str) -> Response:
        """Tell of those that were asked for last, the latest first."""
        most, now = integer("limit", LISTED, 1, MOST_LISTED), services.now()
        found = stored.newest(service_object(), most)
        return answer({"data": [_summary(each, now) for each in found]})

    @routes.post("/<service_object>/actuations/<action>")
    @needs(Right.ACTUATE)
    def submit(action: str, **_names: str) -> Response:
        parameters = text_body()
        if len(parameters.encode()) > MAX_PARAMETERS:
            raise TooLarge
        key, id_ = service_object(), uuid.uuid4().hex
        wanted = _named(action, _actions(services))
        timeout = integer("timeout", timeout_of(wanted), 1, MAX_TIMEOUT)
        new = NewActuation(id_, wanted, parameters, timeout)
        _check_made(stored.submit(key, new, services.now()))
        place = f"{services.base}/{key.id}/actuations/{id_}"
        return answer({"message": "Actuation submitted", "id": id_}, 201, {"Location": place})

    @routes.get("/<service_object>/actuations/<actuation>")
    @needs(Right.ACTUATE)
    def read(actuation: str, **_names: str) -> Response:
        found = stored.find(service_object(), actuation)
        if found is None:
            raise _unknown(actuation)
        about = {
            "status": found.status,
            "updatedAt": found.updated_ms,
            "id": actuation,
            "name": found.action,
            "parameters": found.parameters,
            "createdAt": found.created_ms,
            "states": found.reports,
        }
        return answer(about | _progress(found, services.now()))

    @routes.put("/<service_object>/actuations/<actuation>")
    @needs(Right.SEND)
    def report(actuation: str, **_names: str) -> Response:
        status, now = text_body(STATUS_TYPES), services.now()
        if not status:
            raise Refused("No data in the request")
        if len(status) > MAX_STATUS:
            raise TooLarge
        by_device = is_device()
        if not stored.report(service_object(), actuation, status, now, by_device=by_device):
            raise _unknown(actuation)
        return answer({"status": status, "updatedAt": now}, 201)

    return routes


def _summary(found: ActuationSummary, now: int) -> dict[str, Any]:
    about = {
        "status": found.status,
        "updatedAt": found.updated_ms,
        "id": found.id,
        "name": found.action,
        "createdAt": found.created_ms,
    }
    return about | _progress(found, now)


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


def _check_made(submission: Submission) -> None:
    """Raise NotFound or TooMany unless an actuation was made."""
    if submission is Submission.UNKNOWN:
        raise NotFound("The Service Object was not found.")
    if submission is Submission.FULL:
        raise TooMany(f"{MOST} actuations wait for this Service Object already")
    if submission is Submission.FULL_FOR_TENANT:
        raise TooMany(f"{MOST_OF_TENANT} actuations of yours wait already")


def _progress(actuation: ActuationRecord | ActuationSummary, now: int) -> dict[str, Any]:
    """Return how far it has come, and when."""
    state, times = seen(actuation.state, actuation.expires_ms, now), dict(actuation.times)
    if state is State.EXPIRED:
        times[state.value] = actuation.expires_ms
    return {"state": state.value, "times": times, "expiresAt": actuation.expires_ms}


def _unknown(actuation: str) -> NotFound:
    return NotFound(f"This Service Object does not have the actuation: {actuation:.200}")
