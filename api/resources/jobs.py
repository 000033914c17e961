"""Jobs: how far what was accepted is done."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint, Response

from api.http.answers import answer
from api.http.authentication import authenticated, needs
from api.services import Services
from servioticy.domain.access import Right
from servioticy.ports.statements import Row, Statements
from servioticy.refusals import NotFound

MAX_WAITING = 20
"""Jobs of a tenant that are not finished."""
KEPT = 100
"""Finished ones of a tenant, the latest."""
_NAMES = (
    "id",
    "kind",
    "template",
    "version",
    "state",
    "total",
    "done",
    "failed",
    "failures",
    "createdAt",
    "updatedAt",
)


def blueprint(services: Services) -> Blueprint:
    """`/jobs` and `/jobs/{job}`."""
    routes = Blueprint("jobs", __name__)
    stored = services.ports.statements("jobs")

    @routes.get("/jobs")
    @needs(Right.LIST)
    def listed() -> Response:
        rows = stored.rows("list", tenant=authenticated().caller, limit=KEPT + MAX_WAITING)
        return answer({"data": [_told(row) for row in rows]})

    @routes.get("/jobs/<job>")
    @needs(Right.LIST)
    def read(job: str) -> Response:
        row = stored.row("job", id=job, tenant=authenticated().caller)
        if row is None:
            raise NotFound("The job was not found.")
        return answer(_told(row))

    return routes


def forget_finished(jobs: Statements, tenant: int) -> None:
    """Forget the tenant's finished jobs but the latest: they would grow without end."""
    jobs.rows("forget", tenant=tenant, keep=KEPT)


def _told(row: Row) -> dict[str, Any]:
    found = dict(zip(_NAMES, row, strict=True))
    return found | {"failures": orjson.loads(found["failures"])}
