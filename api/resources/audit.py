"""The audit log: who has defined, allowed and revoked what of a tenant's."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from flask import Blueprint, Response, request

from api.http.answers import answer
from api.http.authentication import authenticated, needs
from api.http.cursors import next_page, position
from api.http.queries import choice, integer, timestamp
from api.services import Services
from servioticy.domain.access import Right

MAX_LIMIT = 1_000
LIMIT = 100
AFTER_ALL = 2**63 - 1
KINDS = (
    *("service object", "stream", "grant", "token", "member", "claim code", "template", "job"),
    *("operator", "workflow", "aspect"),
    *("subscription", "actuation secret"),
)


def blueprint(services: Services) -> Blueprint:
    """`GET /audit`."""
    routes = Blueprint("audit", __name__)
    stored = services.ports.statements("audit")
    days = services.settings.requests.audit_days

    @routes.get("/audit")
    @needs(Right.ADMIN)
    def page() -> Response:
        """List what was done, the newest first, a page at a time."""
        caller, limit = authenticated().caller, integer("limit", LIMIT, 1, MAX_LIMIT)
        kind = choice("kind", KINDS) if "kind" in request.args else ""
        about = f"audit {caller} {kind}"
        cursor = position(about)
        before = AFTER_ALL if cursor is None else timestamp(cursor)
        values = {"kind": kind, "before": before, "days": days, "limit": limit}
        rows = stored.rows("page", tenant=caller, **values)
        headers = next_page(services.base, about, str(rows[-1][0])) if len(rows) == limit else {}
        return answer({"data": [_told(*row) for row in rows]}, 200, headers)

    return routes


def _told(
    number: int,
    at: datetime,
    action: str,
    kind: str,
    subject: str,
    by_platform: bool,
    own: bool | None,
    token: str | None,
) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "number": number,
        "at": int(1000 * at.timestamp()),
        "action": action,
        "kind": kind,
        "id": subject,
        "by": "platform" if by_platform else "tenant" if own else "another tenant",
    }
    if not own or token is None:
        return entry
    member = token.removeprefix("member/")
    return entry | ({"token": token} if member == token else {"member": member})
