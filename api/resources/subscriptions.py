"""Subscriptions to a stream."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from flask import Blueprint, Response, request

from api.http import authentication
from api.http.answers import answer, nothing
from api.http.authentication import needs
from api.http.bodies import json_object
from api.http.errors import NotFound, Refused, within
from api.http.pages import paged
from api.services import Services
from servioticy.domain.access import Resource, Right, may
from servioticy.domain.documents.callbacks import (
    DURABLE,
    FORMATS,
    check_subscription,
    expires_at,
    history_after,
)
from servioticy.domain.model import StreamKey, StreamRef
from servioticy.domain.tokens import digest
from servioticy.domain.webhook_secrets import exchanged, new_secret
from servioticy.errors import Unavailable
from servioticy.ports.cursors import StoredCursor, write_cursor
from servioticy.ports.statements import Statements

MOST = 1_000
"""Subscriptions of one tenant to one stream."""
TOO_MANY = f"You have {MOST} subscriptions to this stream already"
PAGE_ROWS = 100
"""Of an answer that lists them, at once: each has at most some 32 KiB."""


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

    @routes.post("/<service_object>/streams/<stream>/subscriptions")
    @needs(Right.SUBSCRIBE)
    def subscribe(service_object: str, stream: str) -> Response:
        address, key = authentication.stream()
        caller, wanted = authentication.authenticated(), json_object()
        callback = check_subscription(wanted)
        destination = _destination(wanted, callback, caller.token)
        within(services.quotas.metered(caller.caller, "deliveries"))
        within(services.quotas.add(caller.caller, subscriptions=1))
        id_, now = uuid.uuid4().hex, services.now()
        document = {
            "id": id_,
            "createdAt": now,
            "updatedAt": now,
            "callback": callback,
            "source": service_object,
            "destination": destination,
            "stream": stream,
            "customFields": wanted.get("customFields", {}),
            "delay": wanted.get("delay", 0),
            "expire": wanted.get("expire", 0),
        }
        told, cursor = {"id": id_, "createdAt": now}, None
        if callback == "http":
            secret = wanted.get("secret") or new_secret()
            told["secret"] = secret  # now, and never again
            document["format"] = wanted.get("format", FORMATS[0])
            document["secrets"] = exchanged([], secret, now)
        if callback in DURABLE:
            source = StreamRef(service_object, stream)
            cursor = _beginning(source, history_after(wanted), address.partition, services)
        is_full, is_new = stored.rows(
            "subscribe",
            id=id_,
            tenant=caller.caller,
            stream=key.stream_id,
            document=orjson.dumps(document).decode(),
            callback=callback,
            destination=destination,
            now=now,
            most=MOST,
            cursor=cursor,
            expires_at=expires_at(document),
        )[0]
        if not is_new:
            raise Refused(TOO_MANY if is_full else "Duplicated pubsub subscription")
        place = f"{services.base}{quote(request.path.rstrip('/'))}/{id_}"
        return answer(told, 201, {"Location": place})

    @routes.get("/<service_object>/streams/<stream>/subscriptions")
    @needs(Right.READ)
    def listed(**_names: str) -> Response:
        """List the subscriptions: the owner of the stream sees all, others their own."""
        address, key = authentication.stream()
        sees_all = may(address.caller, Right.INSPECT, Resource((key.tenant,)))
        only = None if sees_all else address.caller
        return paged("subscriptions", _pages(stored, key, only, services.now()))

    @routes.get("/subscriptions/<subscription>")
    @needs(Right.READ)
    def read(subscription: str) -> Response:
        caller, own = authentication.authenticated().caller, found(subscription, stored)
        told = _to_public(own, caller, services.now())
        if own.active is not None and own.tenant == caller:
            told |= _progress(subscription, own.tenant, stored, services)
        return answer(told)

    @routes.delete("/subscriptions/<subscription>")
    @needs(Right.SUBSCRIBE)
    def drop(subscription: str) -> Response:
        own = found(subscription, stored)
        stored.rows("unsubscribe", tenant=own.tenant, id=subscription)
        return nothing()

    return routes


def _pages(
    stored: Statements, key: StreamKey, only: int | None, now: int
) -> Iterator[list[bytes]]:
    """Yield the subscriptions to a stream, those of one tenant or of all, a few at a time."""
    created_at, id_ = -1, ""
    caller = authentication.authenticated().caller
    while True:
        at = {"created_at": created_at, "id": id_, "only": only, "rows": PAGE_ROWS}
        rows = stored.rows("of_stream", **key._asdict(), **at)
        if rows:
            created_at, id_ = rows[-1][:2]
            yield [orjson.dumps(_to_public(Subscription(*row[2:]), caller, now)) for row in rows]
        if len(rows) < PAGE_ROWS:
            return


def _beginning(
    stream: StreamRef, history_after: int | None, partition: int, services: Services
) -> str:
    """Return the cursor of a new subscription: with the history, or at the end of the log."""
    if history_after is not None:
        return write_cursor(StoredCursor(history={stream: history_after}))
    return write_cursor(StoredCursor(since={partition: services.ports.log.end_offset(partition)}))


def _progress(
    subscription: str, tenant: int, stored: Statements, services: Services
) -> dict[str, Any]:
    """Return how far it has got, as delivery has stored it; nothing before it has begun."""
    ((text,),) = stored.rows("cursor", id=subscription, tenant=tenant) or [("{}",)]
    position: dict[str, int] = orjson.loads(text).get("offsets", {})
    if not position:
        return {}
    try:
        ends = services.ports.emitted_ends()
    except Unavailable:
        return {"position": position}
    lag = sum(max(0, end - position.get(str(number), end)) for number, end in ends.items())
    return {"position": position, "lag": lag}


def _to_public(subscription: Subscription, caller: int, now: int) -> dict[str, Any]:
    """Return the document; where it goes to is for its own tenant to know: it may be a token."""
    document: dict[str, Any] = orjson.loads(subscription.document)
    document.pop("secrets", None)
    if subscription.active is not None:
        document["state"] = _state(subscription.active, expires_at(document), now)
    if not may(caller, Right.INSPECT, Resource((subscription.tenant,))):
        # What it is called with may hold a password of that tenant's.
        del document["destination"], document["customFields"]
    elif subscription.trouble is not None:
        document["trouble"] = orjson.loads(subscription.trouble)
    return document


def _state(active: bool, expires_at: int | None, now: int) -> str:
    if expires_at is not None and expires_at <= now:
        return "expired"
    return "active" if active else "stopped"


def found(subscription: str, stored: Statements) -> Subscription:
    """Return a subscription of the caller, or to a stream of the caller. Raises NotFound."""
    row = stored.row("subscription", id=subscription)
    if row is None:
        raise NotFound("The Subscription was not found.")
    subscribed = Subscription._make(row)
    authentication.permit(subscribed.resource)
    return subscribed


def _destination(wanted: dict[str, Any], callback: str, token: str) -> str:
    """Return where to deliver. Without one, pubsub delivers under the caller's token.

    The token itself is stored nowhere; its SHA-256 stands for it.
    """
    destination: str | None = wanted.get("destination")
    if destination is None:
        destination = token if callback == "pubsub" else ""
    if destination == token:
        return digest(token).hex()
    return destination
