"""Subscriptions to a stream, and any subscription by its id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson
from flask import Blueprint, Response, request

from api.http import authentication
from api.http.answers import answer, nothing
from api.http.authentication import needs
from api.http.pages import paged
from api.http.queries import integer
from api.resources.subscribing import Room, Subscribing
from api.services import Services
from servioticy.domain.access import Resource, Right, may
from servioticy.domain.documents.callbacks import expires_at
from servioticy.domain.quotas import DELIVERIES, Exceeded
from servioticy.errors import Unavailable
from servioticy.ports.cursors import Source, read_cursor
from servioticy.ports.statements import Statements
from servioticy.refusals import NotFound

TO_STREAM = Room(1_000, "You have 1000 subscriptions to this stream already")
"""Of one tenant."""
PAGE_ROWS = 100
"""Of an answer that lists them, at once: each has at most some 32 KiB."""


OF_THE_ORIGINAL = (
    "id",
    "createdAt",
    "updatedAt",
    "callback",
    "source",
    "destination",
    "stream",
    "customFields",
    "delay",
    "expire",
)
"""What a subscription of the original's had, beside `userId`."""
PAUSED = "paused"
"""Of a subscription: its tenant's quota of deliveries is used up, and what comes waits."""


class Reader(NamedTuple):
    """Who wants to know of subscriptions, and when."""

    tenant: int
    now: int
    exceeded: Exceeded | None
    """Why its own subscriptions get nothing now; how others' stand is theirs to know."""


class Subscription(NamedTuple):
    """An application's wish to get a stream's updates: the columns of the statements."""

    tenant: int
    stream_owner: int
    document: str
    active: bool | None
    """Whether it is delivered to; None where nothing waits for it."""
    trouble: str | None
    """Why its receiver takes nothing."""

    @property
    def resource(self) -> Resource:
        """It belongs to the one who made it, and to the one whose stream it is."""
        return Resource((self.tenant, self.stream_owner))


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}/subscriptions` and `/subscriptions/{subscription}`."""
    routes = Blueprint("subscriptions", __name__)
    stored = services.ports.statements("subscriptions")
    subscribing = Subscribing(services)

    @routes.post("/<service_object>/streams/<stream>/subscriptions")
    @needs(Right.SUBSCRIBE)
    def subscribe(service_object: str, stream: str) -> Response:
        address, key = authentication.stream()
        source = Source(service_object, stream)
        return subscribing.make(source, key.stream_id, address.partition, TO_STREAM)

    @routes.get("/<service_object>/streams/<stream>/subscriptions")
    @needs(Right.READ)
    def listed(**_names: str) -> Response:
        """List the subscriptions: the owner of the stream sees all, others their own."""
        address, key = authentication.stream()
        sees_all = may(address.caller, Right.INSPECT, Resource((key.tenant,)))
        only = None if sees_all else address.caller
        names = {**key._asdict(), "only": only}
        return paged("subscriptions", pages(stored, "of_stream", names, reader(services)))

    @routes.get("/subscriptions")
    @needs(Right.LIST)
    def of_tenant() -> Response:
        """List those of the tenant, whatever they are to, a page at a time."""
        asking = reader(services)
        rows = stored.rows(
            "of_tenant",
            tenant=asking.tenant,
            after=request.args.get("after", ""),
            rows=(limit := integer("limit", PAGE_ROWS, 1, PAGE_ROWS)),
        )
        told = [
            _to_public(Subscription(asking.tenant, asking.tenant, *rest), asking)
            for _id, *rest in rows
        ]
        more = {"next": rows[-1][0]} if len(rows) == limit else {}
        return answer({"subscriptions": told} | more)

    @routes.get("/subscriptions/<subscription>")
    @needs(Right.READ)
    def read(subscription: str) -> Response:
        asking, own = reader(services), found(subscription, stored)
        told = _to_public(own, asking)
        if own.active is not None and own.tenant == asking.tenant:
            told |= _progress(subscription, own.tenant, stored, services)
        return answer(told)

    @routes.get("/private/security/subscriptions/<subscription>")
    @needs(Right.READ)
    def raw(subscription: str) -> Response:
        """As the original answered its own services; here whoever made it, with a token."""
        own = found(subscription, stored)
        authentication.permit(Resource((own.tenant,)))
        return answer(_raw(own))

    @routes.delete("/subscriptions/<subscription>")
    @needs(Right.SUBSCRIBE)
    def drop(subscription: str) -> Response:
        own = found(subscription, stored)
        stored.rows("unsubscribe", tenant=own.tenant, id=subscription)
        return nothing()

    return routes


def reader(services: Services) -> Reader:
    """Return who makes the present request. Raises Unavailable."""
    caller = authentication.authenticated().caller
    exceeded = services.quotas.metered(caller, DELIVERIES)
    return Reader(caller, services.now(), exceeded)


def pages(
    stored: Statements, statement: str, names: Mapping[str, Any], asking: Reader
) -> Iterator[list[bytes]]:
    """Yield the subscriptions that a statement finds, a few at a time."""
    created_at, id_ = -1, ""
    while True:
        at = {"created_at": created_at, "id": id_, "rows": PAGE_ROWS}
        rows = stored.rows(statement, **names, **at)
        if rows:
            created_at, id_ = rows[-1][:2]
            yield [orjson.dumps(_to_public(Subscription(*row[2:]), asking)) for row in rows]
        if len(rows) < PAGE_ROWS:
            return


def _progress(
    subscription: str, tenant: int, stored: Statements, services: Services
) -> dict[str, Any]:
    """Return how far it has got, as delivery has stored it; nothing before it has begun."""
    row = stored.row("cursor", id=subscription, tenant=tenant)
    offsets = read_cursor(row[0]).offsets if row is not None else {}
    if not offsets:
        return {}
    position = {str(number): offset for number, offset in offsets.items()}
    try:
        ends = services.ports.emitted_ends()
    except Unavailable:
        return {"position": position}
    lag = sum(max(0, end - offsets.get(number, end)) for number, end in ends.items())
    return {"position": position, "lag": lag}


def _to_public(subscription: Subscription, asking: Reader) -> dict[str, Any]:
    """Return the document; where it goes to is for its own tenant to know: it may be a token."""
    document: dict[str, Any] = orjson.loads(subscription.document)
    document.pop("secrets", None)
    if subscription.active is not None:
        exceeded = asking.exceeded if asking.tenant == subscription.tenant else None
        document["state"] = _state(subscription.active, expires_at(document), asking.now, exceeded)
        if exceeded is not None and document["state"] == PAUSED:
            until = asking.now + exceeded.retry_after * 1000
            document["paused"] = {"quota": exceeded.quota.name, "until": until}
    if not may(asking.tenant, Right.INSPECT, Resource((subscription.tenant,))):
        # What it is called with may hold a password of that tenant's.
        del document["destination"], document["customFields"]
    elif subscription.trouble is not None:
        document["trouble"] = orjson.loads(subscription.trouble)
    return document


def _raw(subscription: Subscription) -> dict[str, Any]:
    document = orjson.loads(subscription.document)
    kept = {name: document[name] for name in OF_THE_ORIGINAL if name in document}
    return {"id": kept.pop("id"), "userId": str(subscription.tenant), **kept}


def _state(active: bool, expires_at: int | None, now: int, exceeded: Exceeded | None) -> str:
    if expires_at is not None and expires_at <= now:
        return "expired"
    if not active:
        return "stopped"
    return "active" if exceeded is None else PAUSED


def found(subscription: str, stored: Statements) -> Subscription:
    """Return a subscription of the caller, or to a stream of the caller. Raises NotFound."""
    row = stored.row("subscription", id=subscription)
    if row is None:
        raise NotFound("The Subscription was not found.")
    subscribed = Subscription._make(row)
    authentication.permit(subscribed.resource)
    return subscribed
