"""What a tenant has used, hour by hour, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Blueprint, Response, request

from api.http.answers import answer
from api.http.authentication import authenticated, needs
from api.http.queries import choice, moment
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.verdicts import EMITTED
from servioticy.settings.outward import Usage

PAGE_ROWS = 1000
HOUR = 3_600_000
BY = ("all", "hour", "day", "serviceObject", "stream", "provider", "grant")
SIDES = ("used", "provided")


def blueprint(services: Services) -> Blueprint:
    """`/usage`."""
    routes = Blueprint("usage", __name__)
    stored = services.ports.statements("usage")
    prices = services.settings.usage

    @routes.get("/usage")
    @needs(Right.LIST)
    def usage() -> Response:
        """Tell what was used, summed up as asked for; the present hour some seconds late."""
        now = services.now()
        first = moment("from", now - 24 * HOUR)
        by, provided = choice("by", BY), choice("side", SIDES) == "provided"
        rows = stored.rows(
            "summed",
            tenant=authenticated().caller,
            by=by,
            provided=provided,
            **{"from": first // HOUR * HOUR, "to": moment("to", now)},
            grant=request.args.get("grant"),
            after=request.args.get("after"),
            rows=PAGE_ROWS,
        )
        told = [_by_others(by, *r) if provided else _shown(by, prices, *r) for r in rows]
        body: dict[str, Any] = {"data": told}
        if len(rows) == PAGE_ROWS:
            body["next"] = rows[-1][0]
        return answer(body)

    return routes


def _shown(
    by: str,
    prices: Usage,
    key: str,
    updates: int,
    rows: int,
    size: int,
    processor_us: int,
    deliveries: int,
    computations: Mapping[str, int],
    _composites: int,
    _tenants: int,
    read_us: int,
) -> dict[str, Any]:
    computed = sum(computations.values())
    cost = (
        updates / 1e6 * prices.per_million_updates
        + computed / 1e6 * prices.per_million_computations
        + processor_us / 3.6e9 * prices.per_processor_hour
        + size / 1e9 * prices.per_gigabyte
        + deliveries / 1e6 * prices.per_million_deliveries
    )
    return {
        **_key(by, key),
        "updates": updates,
        "computations": computations,
        "processorSeconds": processor_us / 1e6,
        "readSeconds": read_us / 1e6,
        "storedUpdates": rows,
        "storedBytes": size,
        "deliveries": deliveries,
        "cost": cost,
        # Of those that came from outside and those that were derived: each was one to handle.
        "costPerMillionUpdates": 1e6 * cost / rows if rows else None,
    }


def _by_others(by: str, key: str, *used: Any) -> dict[str, Any]:
    """Return what a provider is told: how others' computations end is theirs to know."""
    *_, deliveries, computations, composites, tenants, _read_us = used
    return {
        **_key(by, key),
        "wokenComputations": sum(computations.values()),
        "derivedUpdates": computations.get(EMITTED, 0),
        "deliveries": deliveries,
        "composites": composites,
        "tenants": tenants,
    }


def _key(by: str, key: str) -> dict[str, Any]:
    """Return what a row is about."""
    match by:
        case "hour" | "day":
            return {by: int(key)}
        case "stream":
            service_object, _, stream = key.partition("/")
            return {"serviceObject": service_object, "stream": stream}
        case "serviceObject" | "provider":
            return {by: key}
        case "grant":
            return {by: key or None}
    return {}
