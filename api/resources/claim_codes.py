"""Claim codes: made for devices that have no token yet, listed, revoked."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

import orjson
from flask import Blueprint, Response, request

from api.documents.claim_codes import MAX_USES_OF_ONE, read_wanted
from api.http.answers import answer, nothing
from api.http.authentication import authenticated, needs
from api.http.authentication import service_object as named_service_object
from api.http.bodies import optional_object
from api.http.cursors import next_page, position
from api.http.queries import integer
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.claim_codes import new_code, read_code
from servioticy.domain.documents.templates import parse_template
from servioticy.domain.tokens import digest
from servioticy.ports.statements import Row
from servioticy.refusals import Conflict, NotFound

MOST_USES = 100_000
"""Of all claim codes of a tenant together, from when they are made until they are forgotten."""
KEPT_DAYS = 30
"""So long after its end a code and its claims are there to be looked at."""
LIMIT, MAX_LIMIT = 100, 1_000


def blueprint(services: Services) -> Blueprint:
    """`/claim-codes`, and those of a template and of a Service Object."""
    routes = Blueprint("claim_codes", __name__)
    stored = services.ports.statements("claim_codes")
    templates = services.ports.statements("templates")

    @routes.post("/templates/<template>/claim-codes")
    @needs(Right.CREATE)
    @services.idempotency.once
    def make_for_template(template: str) -> Response:
        """Make codes for devices that get Service Objects of their own."""
        tenant = authenticated().caller
        row = templates.row("content", id=template, tenant=tenant, version=None)
        if row is None:
            raise NotFound("The template was not found.")
        declared = parse_template(orjson.loads(row[1])).parameters
        return _made(
            read_wanted(optional_object(), declared), template=template, service_object=None
        )

    @routes.post("/<service_object>/claim-codes")
    @needs(Right.CHANGE)
    @services.idempotency.once
    def make_for_service_object(**_names: str) -> Response:
        """Make codes for devices that get a token of this Service Object."""
        id_ = named_service_object().id
        return _made(read_wanted(optional_object(), None), template=None, service_object=id_)

    @routes.get("/claim-codes")
    @needs(Right.LIST)
    def listed() -> Response:
        """List what is known of them, which is not the codes themselves."""
        tenant, limit = authenticated().caller, integer("limit", LIMIT, 1, MAX_LIMIT)
        about = f"claim codes {tenant}"
        rows = stored.rows("listed", tenant=tenant, after=position(about) or "", limit=limit)
        headers = next_page(services.base, about, rows[-1][0]) if len(rows) == limit else {}
        return answer({"data": [_shown(*row) for row in rows]}, 200, headers)

    @routes.get("/claim-codes/<claim_code>")
    @needs(Right.LIST)
    def read(claim_code: str) -> Response:
        return answer(_shown(*_found(claim_code)))

    @routes.get("/claim-codes/<claim_code>/claims")
    @needs(Right.LIST)
    def claims(claim_code: str) -> Response:
        """List the devices that have claimed, and those of its list that have not yet."""
        _found(claim_code)
        after = request.args.get("after", "")
        own = {"id": claim_code, "tenant": authenticated().caller}
        rows = stored.rows("claims", **own, after=after, limit=LIMIT)
        names = ("device", "serviceObject", "token", "claimedAt")
        body: dict[str, Any] = {"data": [_without_none(zip(names, r, strict=True)) for r in rows]}
        if len(rows) == LIMIT:
            body["next"] = rows[-1][0]
        return answer(body)

    @routes.delete("/claim-codes/<claim_code>")
    @needs(Right.CHANGE)
    def revoke(claim_code: str) -> Response:
        """End it; the tokens that were given for it stay good."""
        if not stored.rows("revoke", id=claim_code, tenant=authenticated().caller):
            raise NotFound("The claim code was not found.")
        return nothing()

    def _found(id_: str) -> Row:
        row = stored.row("code", id=id_, tenant=authenticated().caller)
        if row is None:
            raise NotFound("The claim code was not found.")
        return row

    def _made(wanted: dict[str, Any], **bound: str | None) -> Response:
        tenant, now = authenticated().caller, services.now()
        maker = authenticated().address.token_id
        count = wanted.pop("count")
        codes = {uuid.uuid4().hex: new_code() for _ in range(count)}
        stored.rows("forget", tenant=tenant, days=KEPT_DAYS)
        values = wanted | {
            "ids": list(codes),
            "digests": [digest(read_code(each) or "") for each in codes.values()],
            "tenant": tenant,
            "maker": maker,
            "now": now,
            "most": MOST_USES,
            "most_of_one": MAX_USES_OF_ONE,
            "days": KEPT_DAYS,
        }
        row = stored.row("make", **values, **bound)
        if row is None:
            raise Conflict(
                f"Your claim codes have {MOST_USES} uses at most, and those of a Service Object "
                f"{MAX_USES_OF_ONE}: revoke some"
            )
        told = [{"id": id_, "code": code} for id_, code in codes.items()]
        times = {"createdAt": now, "expiresAt": _ms(row[0])}
        return answer({"claimCodes": told, "uses": wanted["uses"], **times}, 201)

    return routes


def _shown(
    id_: str,
    template: str | None,
    service_object: str | None,
    parameters: str,
    allowed: list[str],
    device_as: str | None,
    pattern: str | None,
    listed: bool,
    uses: int,
    used: int,
    created_at: int,
    expires_at: datetime,
) -> dict[str, Any]:
    told = {
        "id": id_,
        "template": template,
        "serviceObject": service_object,
        "parameters": orjson.loads(parameters) or None,
        "allowed": allowed or None,
        "deviceAs": device_as,
        "devicePattern": pattern,
        "listed": listed or None,
        "uses": uses,
        "used": used,
        "createdAt": created_at,
        "expiresAt": _ms(expires_at),
    }
    return _without_none(told.items())


def _ms(at: datetime) -> int:
    return int(1000 * at.timestamp())


def _without_none(told: Any) -> dict[str, Any]:
    return {name: value for name, value in told if value is not None}
