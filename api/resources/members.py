"""Members of a tenant: persons of an issuer of tokens, and what each of them may do."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any
from urllib.parse import quote

from flask import Blueprint, Response, request

from api.http.answers import answer, nothing
from api.http.authentication import authenticated, needs
from api.http.bodies import json_object
from api.services import Services
from servioticy.domain.access import MemberRole, Right
from servioticy.domain.documents.codes import NO_CHOICE, REQUIRED, WRONG_TYPE
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.persons import MAX_SUBJECT, Person, is_name
from servioticy.ports.statements import Statements
from servioticy.refusals import Conflict, NotFound, Refused, within

PAGE_ROWS = 100
MAX_TEXT = 200
ROLES = [each.value for each in MemberRole]
NOBODY_LEFT = (
    "Nobody would be left who may add members: there is no other admin, and no token for "
    "everything that does not end"
)


def blueprint(services: Services) -> Blueprint:
    """`/members` and `/members/{member}`."""
    routes = Blueprint("members", __name__)
    stored = services.ports.statements("members")
    issuers = services.settings.identity.issuers.split()

    @routes.post("/members")
    @needs(Right.ADMIN)
    def add() -> Response:
        """Let a person act for the tenant, from the next request on."""
        wanted, tenant = json_object(), authenticated().caller
        person, role = _person(wanted, issuers), _role(wanted)
        if role is None:
            raise WHOLE.bad("A member has to have a role", REQUIRED)
        names = {"name": _text(wanted, "name") or "", "email": _text(wanted, "email") or ""}
        values = {"id": uuid.uuid4().hex, "tenant": tenant, "person": person.digest, "role": role}
        names |= {"issuer": person.issuer, "subject": person.subject}
        with services.quotas.adding(tenant, members=1) as exceeded:
            within(exceeded)
            row = stored.row("add", **values, **names)
        if row is None:
            raise Conflict("This person is a member already")
        place = f"{services.base}/members/{quote(row[0])}"
        return answer(_told(*row), 201, {"Location": place})

    @routes.get("/members")
    @needs(Right.ADMIN)
    def listed() -> Response:
        """List them, a page at a time."""
        tenant, after = authenticated().caller, request.args.get("after", "")
        rows = stored.rows("listed", tenant=tenant, after=after, rows=PAGE_ROWS)
        body: dict[str, Any] = {"members": [_told(*row) for row in rows]}
        if len(rows) == PAGE_ROWS:
            body["next"] = rows[-1][0]
        return answer(body)

    @routes.patch("/members/<member>")
    @needs(Right.ADMIN)
    def change(member: str) -> Response:
        """Give another role, name or e-mail address; what may be less, ends at once."""
        wanted, tenant = json_object(), authenticated().caller
        values = {"role": _role(wanted), "name": _text(wanted, "name")}
        values["email"] = _text(wanted, "email")
        row = stored.row("change", id=member, tenant=tenant, **values)
        if row is None:
            raise _not_done(stored, tenant, member)
        return answer(_told(*row))

    @routes.delete("/members/<member>")
    @needs(Right.ADMIN)
    def remove(member: str) -> Response:
        """Let the person act for the tenant no more, and end what it has opened."""
        tenant = authenticated().caller
        if stored.row("remove", id=member, tenant=tenant) is None:
            raise _not_done(stored, tenant, member)
        return nothing()

    return routes


def _not_done(stored: Statements, tenant: int, member: str) -> Refused:
    """Return why a member was not changed: it is not there, or nobody would be left."""
    if stored.row("member", id=member, tenant=tenant) is None:
        return NotFound("The Member was not found.")
    return Conflict(NOBODY_LEFT)


def _person(wanted: dict[str, Any], issuers: list[str]) -> Person:
    """Return who is to be a member. Raises BadDocument."""
    default = issuers[0] if len(issuers) == 1 else None
    issuer, subject = wanted.get("issuer", default), wanted.get("subject")
    if subject is None:
        raise WHOLE.bad("A member has to have a subject", REQUIRED)
    if not is_name(subject, MAX_SUBJECT):
        reason = f"subject has to be text of 1 to {MAX_SUBJECT} characters, as `sub` of its tokens"
        raise WHOLE.at("subject").bad(reason, WRONG_TYPE)
    if issuer is None:
        raise WHOLE.bad("A member has to have an issuer", REQUIRED)
    if issuer not in issuers:
        reason = f"issuer is one that this platform knows: {', '.join(issuers) or 'it knows none'}"
        raise WHOLE.at("issuer").bad(reason, NO_CHOICE)
    return Person(str(issuer), str(subject))


def _role(wanted: dict[str, Any]) -> str | None:
    """Return the role that is asked for, if one is. Raises BadDocument."""
    if "role" not in wanted:
        return None
    role = wanted["role"]
    if role not in ROLES:
        raise WHOLE.at("role").bad(f"role is one of {', '.join(ROLES)}", NO_CHOICE)
    return str(role)


def _text(wanted: dict[str, Any], name: str) -> str | None:
    """Return a name for people, if one is given. Raises BadDocument."""
    if name not in wanted:
        return None
    text = wanted[name]
    if not isinstance(text, str) or len(text) > MAX_TEXT or "\0" in text:
        reason = f"{name} has to be text of at most {MAX_TEXT} characters"
        raise WHOLE.at(name).bad(reason, WRONG_TYPE)
    return text


def _told(
    id_: str,
    issuer: str,
    subject: str,
    name: str,
    email: str,
    role: str,
    created_at: datetime,
) -> dict[str, Any]:
    told = {
        "id": id_,
        "issuer": issuer,
        "subject": subject,
        "name": name or None,
        "email": email or None,
        "role": role,
        "createdAt": int(1000 * created_at.timestamp()),
    }
    return {key: value for key, value in told.items() if value is not None}
