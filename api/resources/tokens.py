"""Tokens of a tenant: each may do what it is for, as long as it is to."""

from __future__ import annotations

import threading
import uuid
from datetime import datetime
from typing import Any

from flask import Blueprint, Response, request

from api.documents.claim_codes import MAX_USES_OF_ONE
from api.http.answers import answer, nothing
from api.http.authentication import authenticated, needs
from api.http.bodies import json_object, optional_object
from api.services import Services
from servioticy.domain.access import OF_TENANTS, Right
from servioticy.domain.cache import Cache
from servioticy.domain.documents.codes import (
    NO_CHOICE,
    REQUIRED,
    UNKNOWN_SERVICE_OBJECT,
    UNKNOWN_STREAM,
    WRONG_TYPE,
)
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.quotas import LATER_SECONDS, TOKENS, Exceeded, Quota
from servioticy.domain.tokens import digest, new_token
from servioticy.ports.statements import Statements
from servioticy.refusals import Conflict, NotFound, OverQuota, Refused, within

ENDED_KEPT = 1_000
"""Of a tenant's; the others go now and then when another one is made."""
FORGOTTEN_EACH = 50
"""Tokens that one process makes for a tenant between two looks at those that have ended: a look
goes past all that are kept, and takes away twice as many as were made since."""
REMEMBERED = 10_000
"""Tenants of which a process knows how many it has made."""
MOST_OF_ONE = MAX_USES_OF_ONE + 1
"""Of those of a Service Object: as many as devices get by claims."""
MAX_NAME = 200
MAX_SECONDS = 100 * 366 * 86_400
MAX_OVERLAP_SECONDS = 30 * 86_400
PAGE_ROWS = 100
RIGHTS = {each.value: each for each in Right}


def blueprint(services: Services) -> Blueprint:
    """`/tokens` and `/tokens/{token}`."""
    routes = Blueprint("tokens", __name__)
    stored = services.ports.statements("tokens")
    ended = _Ended(stored)

    @routes.post("/tokens")
    @needs(Right.ADMIN)
    def make() -> Response:
        """Make a token; it is told now, and never again."""
        wanted, tenant, token = json_object(), authenticated().caller, new_token()
        scope = _scope(wanted, tenant, stored)
        id_, name = uuid.uuid4().hex, _name(wanted)
        values = {"id": id_, "name": name, "tenant": tenant, "digest": digest(token), **scope}
        expires = _expires(wanted)
        ended.another(tenant)
        with services.quotas.adding(tenant, tokens=1) as exceeded:
            within(exceeded)
            (row,) = stored.rows("make", **values, expires=expires)
        return answer({"id": id_, "token": token, "name": name, **_told(scope, *row)}, 201)

    @routes.get("/tokens")
    @needs(Right.ADMIN)
    def listed() -> Response:
        """List the tokens that are good now, a page at a time."""
        after = request.args.get("after", "")
        tenant = authenticated().caller
        rows = stored.rows("listed", tenant=tenant, after=after, rows=PAGE_ROWS)
        body: dict[str, Any] = {"tokens": [_row(*row) for row in rows]}
        if len(rows) == PAGE_ROWS:
            body["next"] = rows[-1][0]
        return answer(body)

    @routes.delete("/tokens/<token>")
    @needs(Right.ADMIN)
    def revoke(token: str) -> Response:
        """Make it good for nothing, from the next request on."""
        if not stored.rows("revoke", id=token, tenant=authenticated().caller):
            raise NotFound("The Token was not found.")
        return nothing()

    @routes.post("/tokens/<token>/rotation")
    @needs(Right.ADMIN)
    def rotate(token: str) -> Response:
        """Make another one for the same; the old one is good for a while yet, if asked."""
        wanted = optional_object()
        overlap = overlap_seconds(wanted)
        new, id_ = new_token(), uuid.uuid4().hex
        tenant, expires = authenticated().caller, _expires(wanted)
        values = {"before": token, "id": id_, "tenant": tenant, "overlap": overlap}
        quota = services.quotas.most(tenant, TOKENS)
        most = {"most": quota.most, "most_of_one": MOST_OF_ONE}
        ended.another(tenant)
        row = stored.row("rotate", **values, **most, digest=digest(new), expires=expires)
        if row is None:
            raise _not_rotated(token, stored, quota)
        name, service_object, stream, rights, expires_at = row
        scope = {"service_object": service_object, "stream": stream, "rights": rights}
        return answer({"id": id_, "token": new, "name": name, **_told(scope, expires_at)}, 201)

    return routes


class _Ended:
    """Those of each tenant that have ended: all but the last go. Threads may share it."""

    def __init__(self, stored: Statements) -> None:
        self._stored = stored
        self._made: Cache[int, int] = Cache(REMEMBERED)
        self._lock = threading.Lock()

    def another(self, tenant: int) -> None:
        """Another one is about to be made. Raises Unavailable."""
        with self._lock:
            made = self._made.get(tenant) or 0
            self._made.put(tenant, made + 1, 1)
        if made % FORGOTTEN_EACH == 0:
            self._stored.rows("forget_ended", tenant=tenant, keep=ENDED_KEPT)


def _not_rotated(token: str, stored: Statements, quota: Quota) -> Refused:
    """Return why there is no other one: it is not good itself, or there are too many."""
    found = stored.row("is_good", id=token, tenant=authenticated().caller)
    if found is None:
        return NotFound("The Token was not found.")
    if not found[0]:
        return Conflict(
            f"The Service Object has {MOST_OF_ONE} tokens already; revoke some of them"
        )
    return OverQuota(Exceeded(quota, LATER_SECONDS))


def overlap_seconds(wanted: dict[str, Any]) -> int:
    """Return how long what is exchanged shall be good yet. Raises BadDocument."""
    return _seconds(wanted, "overlapSeconds", 0, MAX_OVERLAP_SECONDS) or 0


def _name(wanted: dict[str, Any]) -> str:
    name = wanted.get("name")
    place = WHOLE.at("name")
    if name is None:
        raise WHOLE.bad("A token has to have a name", REQUIRED)
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME or "\0" in name:
        raise place.bad(f"name has to be text of 1 to {MAX_NAME} characters", WRONG_TYPE)
    return name


def _scope(wanted: dict[str, Any], tenant: int, stored: Statements) -> dict[str, Any]:
    """Return what the token is for. Raises BadDocument where that is nothing of the tenant's."""
    for name in ("serviceObject", "stream"):
        if not isinstance(wanted.get(name, ""), str):
            raise WHOLE.at(name).bad(f"{name} has to be text", WRONG_TYPE)
    service_object, stream = wanted.get("serviceObject"), wanted.get("stream")
    rights = _rights(wanted, bound=service_object is not None)
    if stream is not None and service_object is None:
        raise WHOLE.at("stream").bad("A stream is one of a serviceObject", REQUIRED)
    if service_object is not None:
        names = {"service_object": service_object, "stream": stream}
        row = stored.row("own_stream", tenant=tenant, **names)
        if row is None:
            reason = f"The Service Object: {service_object:.100} does not exist."
            raise WHOLE.at("serviceObject").bad(reason, UNKNOWN_SERVICE_OBJECT)
        if stream is not None and row[1] is None:
            reason = "This Service Object does not have this stream."
            raise WHOLE.at("stream").bad(reason, UNKNOWN_STREAM)
    return {"service_object": service_object, "stream": stream, "rights": rights}


def _rights(wanted: dict[str, Any], *, bound: bool) -> list[str] | None:
    if "rights" not in wanted:
        return None
    rights = wanted["rights"]
    place = WHOLE.at("rights")
    if not isinstance(rights, list) or not rights:
        raise place.bad("rights has to be a list of rights", WRONG_TYPE)
    for number, each in enumerate(rights):
        if not isinstance(each, str) or each not in RIGHTS:
            reason = f"A right is one of {', '.join(RIGHTS)}"
            raise place.at(number).bad(reason, NO_CHOICE)
        if bound and RIGHTS[each] in OF_TENANTS:
            reason = f"The right {each} is not about one Service Object"
            raise place.at(number).bad(reason, NO_CHOICE)
    return sorted(set(rights))


def _expires(wanted: dict[str, Any]) -> int | None:
    return _seconds(wanted, "expiresIn", 1, MAX_SECONDS)


def _seconds(wanted: dict[str, Any], name: str, least: int, most: int) -> int | None:
    if name not in wanted:
        return None
    seconds = wanted[name]
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not least <= seconds <= most:
        reason = f"{name} has to be a whole number of seconds from {least} to {most}"
        raise WHOLE.at(name).bad(reason, WRONG_TYPE)
    return seconds


def _told(
    scope: dict[str, Any], expires_at: datetime | None, created_at: datetime | None = None
) -> dict[str, Any]:
    times = {"createdAt": created_at, "expiresAt": expires_at}
    told = {
        "serviceObject": scope["service_object"],
        "stream": scope["stream"],
        "rights": scope["rights"],
        **{name: at and int(1000 * at.timestamp()) for name, at in times.items()},
    }
    return {name: value for name, value in told.items() if value is not None}


def _row(
    id_: str,
    name: str,
    service_object: str | None,
    stream: str | None,
    rights: list[str] | None,
    created_at: datetime,
    expires_at: datetime | None,
) -> dict[str, Any]:
    scope = {"service_object": service_object, "stream": stream, "rights": rights}
    return {"id": id_, "name": name, **_told(scope, expires_at, created_at)}
