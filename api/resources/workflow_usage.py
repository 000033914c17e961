"""What workflows of a tenant have done, hour by hour, and what that costs."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, request

from api.http.answers import answer
from api.http.authentication import authenticated, needs
from api.http.queries import choice, moment
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.workflows.costs import Work, amounts

PAGE_ROWS = 1_000
HOUR = 3_600_000
BY = ("all", "hour", "day", "workflow", "step")


def blueprint(services: Services) -> Blueprint:
    """`/usage/workflows`."""
    routes = Blueprint("workflow_usage", __name__)
    stored = services.ports.statements("workflows")
    prices = services.settings.usage

    @routes.get("/usage/workflows")
    @needs(Right.LIST)
    def usage() -> Response:
        """Tell what was done, summed up as asked for; the present hour some seconds late."""
        now, by = services.now(), choice("by", BY)
        first = moment("from", now - 24 * HOUR)
        rows = stored.rows(
            "used",
            tenant=authenticated().caller,
            by=by,
            **{"from": first // HOUR * HOUR, "to": moment("to", now)},
            after=request.args.get("after"),
            rows=PAGE_ROWS,
        )
        told = []
        for key, atoms, made, failed, dead, processor_us, mebibyte_ms in rows:
            work = Work(atoms, made, processor_us, mebibyte_ms)
            told.append(
                {
                    **_key(by, key),
                    "atoms": atoms,
                    "made": made,
                    "failed": failed,
                    "dead": dead,
                    **amounts(prices, work),
                }
            )
        body: dict[str, Any] = {"data": told}
        if len(rows) == PAGE_ROWS:
            body["next"] = rows[-1][0]
        return answer(body)

    return routes


def _key(by: str, key: str) -> dict[str, Any]:
    """Return what a row is about."""
    match by:
        case "hour" | "day":
            return {by: int(key)}
        case "workflow":
            return {by: key}
        case "step":
            workflow, _, step = key.partition("/")
            return {"workflow": workflow, "step": step}
    return {}
