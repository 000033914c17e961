"""What a tenant has measured of its own streams: aspects, and what they tell by the minute."""

from __future__ import annotations

import math
import uuid
from typing import Any

from flask import Blueprint, Response, request

from api.http.answers import answer, nothing
from api.http.authentication import authenticated, needs
from api.http.bodies import json_object
from api.http.queries import moment
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import REQUIRED, TOO_MUCH, WRONG_TYPE
from servioticy.domain.verdicts import RAN
from servioticy.ports.statements import Row
from servioticy.refusals import Conflict, NoStream, NotFound, Refused, within

PAGE_ROWS = 100
MINUTE_MS, HOUR_MS = 60_000, 3_600_000
KEPT_MS = 24 * HOUR_MS
"""So long what is measured is there (servioticy/storage/sql/accounts.sql)."""
MAX_PURPOSE = 100
FIELDS = ("serviceObject", "stream", "purpose")


def blueprint(services: Services) -> Blueprint:
    """`/monitoring/aspects`, and what each has measured."""
    routes = Blueprint("monitoring", __name__)
    stored = services.ports.statements("aspects")

    @routes.post("/monitoring/aspects")
    @needs(Right.CHANGE)
    def make() -> Response:
        """Have a stream's computations measured from now on."""
        wanted, tenant = _wanted(json_object()), authenticated().caller
        if stored.row("stream", tenant=tenant, **_stream(wanted)) is None:
            raise NoStream
        stored.rows("sweep", tenant=tenant)
        with services.quotas.adding(tenant, aspects=1) as exceeded:
            within(exceeded)
            values = {"id": uuid.uuid4().hex, "tenant": tenant, "now": services.now()}
            row = stored.row("make", **values, **wanted)
        if row is None:
            raise Conflict("The stream is measured already")
        place = f"{services.base}/monitoring/aspects/{row[0]}"
        return answer(_told(*row), 201, {"Location": place})

    @routes.get("/monitoring/aspects")
    @needs(Right.INSPECT)
    def listed() -> Response:
        """List them, a page at a time."""
        tenant, after = authenticated().caller, request.args.get("after", "")
        rows = stored.rows("listed", tenant=tenant, after=after, rows=PAGE_ROWS)
        body: dict[str, Any] = {"data": [_told(*row) for row in rows]}
        if len(rows) == PAGE_ROWS:
            body["next"] = rows[-1][0]
        return answer(body)

    @routes.get("/monitoring/aspects/<aspect>")
    @needs(Right.INSPECT)
    def read(aspect: str) -> Response:
        return answer(_told(*found(aspect)))

    @routes.delete("/monitoring/aspects/<aspect>")
    @needs(Right.CHANGE)
    def end(aspect: str) -> Response:
        """Measure no more; what was measured goes, too."""
        if stored.row("end", tenant=authenticated().caller, id=aspect) is None:
            raise NotFound("The aspect was not found.")
        return nothing()

    @routes.get("/monitoring/aspects/<aspect>/series")
    @needs(Right.INSPECT)
    def series(aspect: str) -> Response:
        """Tell each minute in which anything was measured, the oldest first."""
        since, until, rows = measured(aspect)
        return answer({"from": since, "to": until, "data": [_minute(*row) for row in rows]})

    @routes.get("/monitoring/aspects/<aspect>/summary")
    @needs(Right.INSPECT)
    def summary(aspect: str) -> Response:
        """Tell all minutes together, and how they lie."""
        since, until, rows = measured(aspect)
        return answer({"from": since, "to": until, **_together(rows)})

    def found(aspect: str) -> Row:
        row = stored.row("aspect", tenant=authenticated().caller, id=aspect)
        if row is None:
            raise NotFound("The aspect was not found.")
        return row

    def measured(aspect: str) -> tuple[int, int, list[Row]]:
        """The span that is asked for, by whole minutes, and what stands in it."""
        id_, now = found(aspect)[0], services.now()
        until = moment("to", now // MINUTE_MS * MINUTE_MS + MINUTE_MS)
        since = moment("from", max(0, until - HOUR_MS))
        if since >= until:
            raise Refused("from has to be before to")
        since -= since % MINUTE_MS
        tenant = authenticated().caller
        rows = stored.rows(
            "minutes", tenant=tenant, id=id_, since=since, until=until, kept=KEPT_MS
        )
        return since, until, rows

    return routes


def _wanted(body: dict[str, Any]) -> dict[str, str]:
    """Return what an aspect is to be. Raises BadDocument."""
    for name in body:
        if name not in FIELDS:
            raise BadDocument(f"{name}: an aspect has no such field", f"/{name}", WRONG_TYPE)
    found = {}
    for name in FIELDS:
        value = body.get(name, "" if name == "purpose" else None)
        if value is None:
            raise BadDocument(f"{name} is missing", "", REQUIRED)
        if not isinstance(value, str):
            raise BadDocument(f"{name} has to be text", f"/{name}", WRONG_TYPE)
        found[name] = value
    if len(found["purpose"]) > MAX_PURPOSE:
        reason = f"purpose has to be text of at most {MAX_PURPOSE} characters"
        raise BadDocument(reason, "/purpose", TOO_MUCH)
    return {"service_object": found.pop("serviceObject"), **found}


def _stream(wanted: dict[str, str]) -> dict[str, str]:
    return {name: wanted[name] for name in ("service_object", "stream")}


def _told(
    aspect: str, service_object: str, stream: str, purpose: str, created_at: int
) -> dict[str, Any]:
    return {
        "id": aspect,
        "serviceObject": service_object,
        "stream": stream,
        "purpose": purpose or stream,
        "createdAt": created_at,
    }


def _minute(minute: int, rows: int, size: int, used: int, ended: dict[str, int]) -> dict[str, Any]:
    ran = _ran(ended)
    return {
        "minute": minute,
        "computations": ended,
        "processorSeconds": used / 1e6,
        "eachSeconds": used / 1e6 / ran if ran else None,
        "storedUpdates": rows,
        "storedBytes": size,
    }


def _together(rows: list[Row]) -> dict[str, Any]:
    """Sums, and of the minutes in which code ran how what a computation took lies."""
    ended: dict[str, int] = {}
    for row in rows:
        for verdict, times in row[4].items():
            ended[verdict] = ended.get(verdict, 0) + times
    stored, size, used = (sum(row[place] for row in rows) for place in (1, 2, 3))
    each = sorted(row[3] / 1e6 / ran for row in rows if (ran := _ran(row[4])))
    ran = _ran(ended)
    return {
        "minutes": len(rows),
        "computations": ended,
        "processorSeconds": used / 1e6,
        "storedUpdates": stored,
        "storedBytes": size,
        "eachSeconds": {
            "mean": used / 1e6 / ran,
            "least": each[0],
            "middle": _at(each, 0.5),
            "p95": _at(each, 0.95),
            "most": each[-1],
        }
        if ran
        else None,
    }


def _at(values: list[float], part: float) -> float:
    """The value up to which this part of all lies."""
    return values[max(0, math.ceil(part * len(values)) - 1)]


def _ran(ended: dict[str, int]) -> int:
    """Computations in which code ran."""
    return sum(times for verdict, times in ended.items() if verdict in RAN)
