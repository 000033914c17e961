"""Jobs: how far what was accepted is done."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint, Response

from api.http.answers import answer, nothing
from api.http.authentication import authenticated, needs
from api.services import Services
from servioticy.domain.access import Right
from servioticy.ports.statements import Row, Statements
from servioticy.refusals import Conflict, NotFound

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
_OF_BACKFILLS = ("serviceObject", "stream", "from", "to", "beganAt")


def blueprint(services: Services) -> Blueprint:
    """`/jobs` and `/jobs/{job}`."""
    routes = Blueprint("jobs", __name__)
    stored = services.ports.statements("jobs")
    backfills = services.ports.statements("backfills")

    @routes.get("/jobs")
    @needs(Right.LIST)
    def listed() -> Response:
        rows = stored.rows("list", tenant=authenticated().caller, limit=KEPT + MAX_WAITING)
        return answer({"data": [_told(row, services.now()) for row in rows]})

    @routes.get("/jobs/<job>")
    @needs(Right.LIST)
    def read(job: str) -> Response:
        row = stored.row("job", id=job, tenant=authenticated().caller)
        if row is None:
            raise NotFound("The job was not found.")
        return answer(_told(row, services.now()))

    @routes.delete("/jobs/<job>")
    @needs(Right.CHANGE)
    def cancel(job: str) -> Response:
        """End a backfill that is not done; nothing is left of it."""
        named = {"id": job, "tenant": authenticated().caller}
        if not backfills.rows("cancel", **named):
            if stored.row("job", **named) is None:
                raise NotFound("The job was not found.")
            raise Conflict("Only a backfill can be cancelled, and only while it is not finished.")
        return nothing()

    return routes


def forget_finished(jobs: Statements, tenant: int) -> None:
    """Forget the tenant's finished jobs but the latest: they would grow without end."""
    jobs.rows("forget", tenant=tenant, keep=KEPT)


def _told(row: Row, now: int) -> dict[str, Any]:
    found = dict(zip(_NAMES, row, strict=False))
    found["failures"] = orjson.loads(found["failures"])
    if found["kind"] != "backfill":
        return found
    del found["template"], found["version"]
    found |= zip(_OF_BACKFILLS, row[len(_NAMES) :], strict=True)
    return found | _pace(found, now)


def _pace(backfill: dict[str, Any], now: int) -> dict[str, float | None]:
    """Return how many updates a second are read, and how many seconds that will take yet."""
    began, done, total = backfill.pop("beganAt"), backfill["done"], backfill["total"]
    is_over = backfill["state"] not in ("waiting", "running")
    if began is None or total is None or not done:
        return {"rate": None, "rest": 0 if is_over else None}
    seconds = max(0.001, ((backfill["updatedAt"] if is_over else now) - began) / 1000)
    rate = done / seconds
    rest = 0.0 if is_over else max(0, total - done) / rate
    return {"rate": round(rate, 1), "rest": round(rest, 1)}
