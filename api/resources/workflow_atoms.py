"""Atoms of workflows: those that come by HTTP, results, and dead letters."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint, Response

from api.http.answers import answer
from api.http.authentication import authenticated, needs
from api.http.bodies import json_object
from api.http.queries import integer
from api.resources.workflows import found
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents.codes import REQUIRED, TOO_MUCH, WRONG_TYPE
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.quotas import ATOM_BYTES, ATOMS, Exceeded
from servioticy.domain.workflows.model import MAX_ATOM_BYTES
from servioticy.domain.workflows.programs import fault_of
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.refusals import Conflict, Refused, within

MAX_ATOMS = 1_000
"""Of one request."""
LIMIT, MAX_LIMIT = 100, 1_000
ATTEMPTS = 3
LAST = 2**63 - 1
FULL_SECONDS = 5
"""After which it is worth a try again where the queues are full: they are worked on."""


def blueprint(services: Services) -> Blueprint:
    """`/workflows/{workflow}/atoms`, `/results` and `/dead-letters`."""
    routes = Blueprint("workflow_atoms", __name__)
    stored = services.ports.statements("workflows")
    queues = services.ports.atoms

    @routes.post("/workflows/<workflow>/atoms")
    @needs(Right.SEND)
    @services.idempotency.once
    def send(workflow: str) -> Response:
        """Take all of them or none: what was promised survives whatever is killed."""
        tenant, atoms, now = authenticated().caller, _atoms(), services.now()
        within(_full(tenant, atoms))
        for _ in range(ATTEMPTS):
            own = found(stored, workflow)
            read = parse_workflow(orjson.loads(own.content))
            if read.source is not None or read.files is not None:
                raise Refused("The atoms of this workflow come from a stream or from files")
            given = [(each, now) for each in atoms]
            if queues.put(tenant, workflow, own.version, read, given, now):
                return answer({"accepted": len(atoms), "version": own.version}, 202)
        raise Conflict("The workflow is changed again and again in this moment")

    @routes.get("/workflows/<workflow>/results")
    @needs(Right.READ)
    def results(workflow: str) -> Response:
        """The newest atoms that came to a sink that collects, a page at a time."""
        rows = _page("collected", workflow)
        told = [
            {"id": id_, "enteredAt": entered, "collectedAt": at, "atom": orjson.Fragment(body)}
            for id_, entered, at, body in rows
        ]
        return answer({"data": told})

    @routes.get("/workflows/<workflow>/dead-letters")
    @needs(Right.READ)
    def dead(workflow: str) -> Response:
        """The newest atoms that a step has failed on for good, a page at a time."""
        names: dict[int, Any] = {}
        told = []
        for id_, version, step, entered, died, attempts, reason, body in _page("dead", workflow):
            if version not in names:
                content = found(stored, workflow, version).content
                names[version] = parse_workflow(orjson.loads(content))
            told.append(
                {
                    "id": id_,
                    "version": version,
                    "step": names[version].name_of(step),
                    "enteredAt": entered,
                    "diedAt": died,
                    "attempts": attempts,
                    "reason": reason,
                    "atom": orjson.Fragment(body),
                }
            )
        return answer({"data": told})

    @routes.post("/workflows/<workflow>/dead-letters/redrive")
    @needs(Right.CHANGE)
    def redrive(workflow: str) -> Response:
        """Let all that are dead now wait once more, as if they had not been tried."""
        found(stored, workflow)
        tenant, now = authenticated().caller, services.now()
        within(_full(tenant, ()))
        values = {"id": workflow, "tenant": tenant, "now": now, "limit": MAX_LIMIT}
        count = stored.rows("redrive", **values)[0][0]
        return answer({"redriven": count}, 202)

    def _page(name: str, workflow: str) -> list[Any]:
        found(stored, workflow)
        values = {
            "id": workflow,
            "tenant": authenticated().caller,
            "before": integer("before", LAST, 1, LAST),
            "limit": integer("limit", LIMIT, 1, MAX_LIMIT),
        }
        return list(stored.rows(name, **values))

    def _full(tenant: int, atoms: Any) -> Exceeded | None:
        held, size = queues.held(tenant)
        coming = sum(map(len, atoms))
        for name, more in ((ATOMS, held + len(atoms)), (ATOM_BYTES, size + coming)):
            quota = services.quotas.most(tenant, name)
            if more > quota.most:
                return Exceeded(quota, FULL_SECONDS)
        return None

    return routes


def _atoms() -> list[bytes]:
    """Return the atoms of the present request as JSON. Raises BadDocument with its place."""
    sent = json_object().get("atoms")
    part = WHOLE.at("atoms")
    if sent is None:
        raise part.bad('The request has no atoms: {"atoms": [{...}, ...]}', REQUIRED)
    if not isinstance(sent, list) or not sent:
        raise part.bad("atoms is a list of one JSON object or more", WRONG_TYPE)
    if len(sent) > MAX_ATOMS:
        raise part.bad(f"There are at most {MAX_ATOMS} atoms in one request", TOO_MUCH)
    found = []
    for place, each in enumerate(sent):
        text = orjson.dumps(each)
        if fault := fault_of(text):
            code = TOO_MUCH if len(text) > MAX_ATOM_BYTES else WRONG_TYPE
            raise part.at(place).bad(f"Atom {place}: {fault}", code)
        found.append(text)
    return found
