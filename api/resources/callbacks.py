"""What becomes of HTTP callbacks: their secrets, and what a receiver did not take."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint, Response, request

from api.documents.callback_addresses import address_warnings
from api.http.answers import answer, nothing
from api.http.authentication import needs, permit
from api.http.bodies import json_object
from api.resources.subscriptions import Subscription, found
from api.services import Services
from servioticy.domain.access import Resource, Right
from servioticy.domain.documents.callbacks import check_subscription, expires_at
from servioticy.domain.documents.codes import NO_CHOICE
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.webhook_secrets import exchanged, new_secret
from servioticy.numbers import whole
from servioticy.ports.statements import Row, Statements
from servioticy.refusals import Conflict, NotFound, Refused

PAGE_ROWS = 100
CHANGEABLE = ("destination", "format", "customFields", "delay", "expire")
MAX_NUMBER = 2**63 - 1


def blueprint(services: Services) -> Blueprint:
    """Changes of `/subscriptions/{subscription}`, its `secret`, `resume` and `dead-deliveries`."""
    routes = Blueprint("callbacks", __name__)
    stored = services.ports.statements("subscriptions")

    @routes.put("/subscriptions/<subscription>")
    @needs(Right.SUBSCRIBE)
    def change(subscription: str) -> Response:
        """Take what the body says of it; what it does not say stays, and so does its place."""
        own, wanted, now = owned(subscription, stored), json_object(), services.now()
        document = orjson.loads(own.document)
        if wanted.get("callback", document["callback"]) != document["callback"]:
            raise WHOLE.at("callback").bad("The callback of a subscription stays", NO_CHOICE)
        document |= {each: wanted[each] for each in CHANGEABLE if each in wanted}
        checked = {each: document[each] for each in ("callback", *CHANGEABLE)}
        check_subscription(checked)  # a date becomes a number there
        document |= checked
        _rewrite(subscription, own, document | {"updatedAt": now}, stored)
        told = address_warnings(document["destination"], services.settings)
        return answer({"id": subscription, "updatedAt": now} | told)

    @routes.post("/subscriptions/<subscription>/secret")
    @needs(Right.SUBSCRIBE)
    def renew_secret(subscription: str) -> Response:
        """Make a new secret; the one before signs along for a day."""
        own, secret, now = owned(subscription, stored), new_secret(), services.now()
        document = orjson.loads(own.document)
        document["secrets"] = exchanged(document["secrets"], secret, now)
        _rewrite(subscription, own, document | {"updatedAt": now}, stored)
        return answer({"id": subscription, "secret": secret}, 201)

    @routes.post("/subscriptions/<subscription>/resume")
    @needs(Right.SUBSCRIBE)
    def resume(subscription: str) -> Response:
        """Call the receiver again, from where it was stopped, and at once."""
        own = owned(subscription, stored)
        stored.rows("resume", id=subscription, tenant=own.tenant)
        return nothing()

    @routes.get("/subscriptions/<subscription>/dead-deliveries")
    @needs(Right.READ)
    def dead(subscription: str) -> Response:
        """List what the receiver has refused for good, the oldest first, a page at a time."""
        own, after = owned(subscription, stored), _after()
        values = {"id": subscription, "tenant": own.tenant, "after": after, "rows": PAGE_ROWS}
        rows = stored.rows("dead_deliveries", **values)
        body: dict[str, object] = {"deadDeliveries": [_told(each) for each in rows]}
        if len(rows) == PAGE_ROWS:
            body["next"] = str(rows[-1][0])
        return answer(body)

    @routes.post("/subscriptions/<subscription>/dead-deliveries/redrive")
    @needs(Right.SUBSCRIBE)
    def redrive(subscription: str) -> Response:
        """Deliver all of them once more, before whatever else waits."""
        own = owned(subscription, stored)
        ((count,),) = stored.rows("redrive", id=subscription, tenant=own.tenant)
        return answer({"redriven": count}, 202)

    return routes


def owned(subscription: str, stored: Statements) -> Subscription:
    """Return a subscription of the caller that calls a receiver. Raises NotFound."""
    own = found(subscription, stored)
    permit(Resource((own.tenant,)))  # whose stream it is, is not enough
    if orjson.loads(own.document)["callback"] != "http":
        raise NotFound("The Subscription calls nobody.")
    return own


def _rewrite(id_: str, own: Subscription, document: dict[str, Any], stored: Statements) -> None:
    """Store another document in the place of this one. Raises Conflict where it is not there."""
    changed = stored.rows(
        "change_document",
        id=id_,
        tenant=own.tenant,
        before=own.document,
        document=orjson.dumps(document).decode(),
        destination=document["destination"],
        expires_at=expires_at(document),
    )
    if not changed:
        raise Conflict("The subscription has been changed meanwhile; try again")


def _after() -> int:
    found = whole(request.args.get("after", "0"), 0, MAX_NUMBER)
    if found is None:
        raise Refused("after has to be what an answer named as next")
    return found


def _told(row: Row) -> dict[str, object]:
    _number, id_, service_object, stream, document, reason, died_at, redrive = row
    return {
        "id": id_,
        "source": service_object,
        "stream": stream,
        "update": orjson.Fragment(document),
        "reason": reason,
        "diedAt": died_at,
        "redriven": redrive,
    }
