"""Grants: what a tenant lets others do with its streams, and until when."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import quote

from flask import Blueprint, Response, request

from api.http import authentication
from api.http.answers import answer, nothing
from api.http.authentication import authenticated, needs
from api.http.bodies import json_object
from api.http.queries import choice
from api.services import Services
from servioticy.changes import NotGranted
from servioticy.domain.access import Right
from servioticy.domain.documents.codes import NO_CHOICE, REQUIRED, WRONG_TYPE
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.model import Grant
from servioticy.ports.change_store import NewGrant
from servioticy.ports.statements import Statements
from servioticy.refusals import Conflict, NotFound

MOST = 1000
"""Grants of one Service Object: they are read with its document."""
MAX_SECONDS = 100 * 366 * 86_400
PAGE_ROWS = 100
READ, DERIVE = "read", "derive"


def blueprint(services: Services) -> Blueprint:
    """`/grants`, and the `/grants` of a Service Object and of a stream."""
    routes = Blueprint("grants", __name__)
    stored = services.ports.statements("grants")

    @routes.post("/<service_object>/grants")
    @routes.post("/<service_object>/streams/<stream>/grants")
    @needs(Right.CHANGE)
    def give(service_object: str, stream: str | None = None) -> Response:
        """Let another tenant, or every one, read; in force when this answers."""
        if stream is not None:
            authentication.stream()
        wanted, now = json_object(), services.now()
        grant = Grant(uuid.uuid4().hex, _grantee(wanted, stored), stream, _use(wanted) == DERIVE)
        expires_at = _expires_at(wanted, now)
        new = NewGrant(authentication.service_object(), grant, now, expires_at)
        try:
            services.ports.changes.grant(new, MOST)
        except NotGranted as error:
            raise Conflict(f"There are {MOST} grants of it already; revoke some") from error
        told: dict[str, Any] = {"id": grant.id, "serviceObject": service_object, "stream": stream}
        told |= {"use": _use(wanted), "createdAt": now, "expiresAt": expires_at}
        place = f"{services.base}/grants/{quote(grant.id)}"
        return answer(_without_none(told), 201, {"Location": place})

    @routes.get("/grants")
    @needs(Right.LIST)
    def listed() -> Response:
        """List those in force that the tenant has given, and those given to it by name."""
        side, tenant = choice("side", ("both", "given", "received")), authenticated().caller
        rows = stored.rows(
            "listed",
            tenant=tenant,
            given=side != "received",
            received=side != "given",
            after=request.args.get("after", ""),
            now=services.now(),
            rows=PAGE_ROWS,
        )
        ((own,),) = stored.rows("public_id", tenant=tenant)
        body: dict[str, Any] = {"tenant": own, "grants": [_row(*row) for row in rows]}
        if len(rows) == PAGE_ROWS:
            body["next"] = rows[-1][0]
        return answer(body)

    @routes.get("/grants/<grant>")
    @needs(Right.LIST)
    def one(grant: str) -> Response:
        """Tell of one given or received, and when it was used, for a while after its end, too."""
        tenant = authenticated().caller
        row = stored.row("grant", tenant=tenant, grant=grant, now=services.now())
        if row is None:
            raise NotFound("The Grant was not found.")
        return answer(_row(*row))

    @routes.delete("/grants/<grant>")
    @needs(Right.CHANGE)
    def revoke(grant: str) -> Response:
        """End it: reads are refused from now on, and composites read no more at one place."""
        if "\0" in grant:
            raise NotFound("The Grant was not found.")
        try:
            services.ports.changes.revoke(authenticated().caller, grant, services.now())
        except NotGranted as error:
            raise NotFound("The Grant was not found.") from error
        return nothing()

    return routes


def _grantee(wanted: dict[str, Any], stored: Statements) -> int | None:
    """Return to whom it is; None: to everybody. Raises BadDocument."""
    everyone, id_ = wanted.get("everyone", False), wanted.get("tenant")
    if not isinstance(everyone, bool):
        raise WHOLE.at("everyone").bad("everyone is true or false", WRONG_TYPE)
    if everyone == (id_ is not None):
        raise WHOLE.bad('A grant is to a "tenant", or to "everyone"', REQUIRED)
    if everyone:
        return None
    place = WHOLE.at("tenant")
    if not isinstance(id_, str):
        raise place.bad("tenant has to be the id of a tenant", WRONG_TYPE)
    row = stored.row("grantee", public_id=id_)
    if row is None:
        raise place.bad(
            "There is no tenant of this id: it finds its own at GET /grants", NO_CHOICE
        )
    if row[0] == authenticated().caller:
        raise place.bad("A tenant needs no grant of what is its own", NO_CHOICE)
    found: int = row[0]
    return found


def _use(wanted: dict[str, Any]) -> str:
    use: object = wanted.get("use", READ)
    if use not in (READ, DERIVE):
        reason = f"use is {READ}, or {DERIVE}: only for what composites make of it"
        raise WHOLE.at("use").bad(reason, NO_CHOICE)
    return str(use)


def _expires_at(wanted: dict[str, Any], now: int) -> int | None:
    seconds = wanted.get("expiresIn")
    if seconds is None:
        return None
    whole = isinstance(seconds, int) and not isinstance(seconds, bool)
    if not whole or not 1 <= seconds <= MAX_SECONDS:
        reason = f"expiresIn has to be a whole number of seconds from 1 to {MAX_SECONDS}"
        raise WHOLE.at("expiresIn").bad(reason, WRONG_TYPE)
    return now + 1000 * int(seconds)


def _row(
    id_: str,
    given: bool,
    giver: str,
    service_object: str,
    stream: str | None,
    receiver: str | None,
    name: str | None,
    everyone: bool,
    derived_only: bool,
    created_at: int,
    expires_at: int | None,
    first_used: int | None,
    last_used: int | None,
    ended_at: int | None,
) -> dict[str, Any]:
    return _without_none(
        {
            "id": id_,
            "side": "given" if given else "received",
            "from": giver,
            "tenant": receiver,
            "name": name,
            "everyone": True if everyone else None,
            "serviceObject": service_object,
            "stream": stream,
            "use": DERIVE if derived_only else READ,
            "createdAt": created_at,
            "expiresAt": expires_at,
            "firstUsedAt": first_used,
            "lastUsedAt": last_used,
            "endedAt": ended_at,
        }
    )


def _without_none(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value is not None}
