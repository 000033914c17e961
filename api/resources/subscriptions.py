"""Subscriptions to a stream."""

from __future__ import annotations

import uuid
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from flask import Blueprint, Response, request

from api.http import authentication
from api.http.answers import answer, nothing
from api.http.authentication import needs
from api.http.bodies import json_object
from api.http.errors import NotFound, Refused
from api.services import Services
from servioticy.domain.access import Resource, Right, may
from servioticy.domain.tokens import digest
from servioticy.ports.statements import Statements

KINDS = ("pubsub", "websocket")
MAX_DESTINATION = 1000


class Subscription(NamedTuple):
    """An application's wish to get a stream's updates: the columns of the statements."""

    tenant: int
    stream_owner: int
    document: str

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
        _, key = authentication.stream()
        caller, wanted = authentication.authenticated(), json_object()
        callback = _callback(wanted)
        destination = _destination(wanted, callback, caller.token)
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
        values = {"callback": callback, "destination": destination, "now": now}
        text = orjson.dumps(document).decode()
        if not stored.rows(
            "subscribe",
            id=id_,
            tenant=caller.caller,
            stream=key.stream_id,
            document=text,
            **values,
        ):
            raise Refused("Duplicated pubsub subscription")
        place = f"{services.base}{quote(request.path.rstrip('/'))}/{id_}"
        return answer({"id": id_, "createdAt": now}, 201, {"Location": place})

    @routes.get("/<service_object>/streams/<stream>/subscriptions")
    @needs(Right.READ)
    def listed(**_names: str) -> Response:
        """List the subscriptions: the owner of the stream sees all, others their own."""
        address, key = authentication.stream()
        found = [
            _to_public(each)
            for each in map(Subscription._make, stored.rows("of_stream", **key._asdict()))
            if may(address.caller, Right.READ, each.resource)
        ]
        return answer({"subscriptions": found})

    @routes.get("/subscriptions/<subscription>")
    @needs(Right.READ)
    def read(subscription: str) -> Response:
        return answer(_to_public(_found(subscription, stored)))

    @routes.delete("/subscriptions/<subscription>")
    @needs(Right.SUBSCRIBE)
    def drop(subscription: str) -> Response:
        found = _found(subscription, stored)
        stored.rows("unsubscribe", tenant=found.tenant, id=subscription)
        return nothing()

    return routes


def _to_public(subscription: Subscription) -> dict[str, Any]:
    """Return the document; where it goes to is for its own tenant to know: it may be a token."""
    document: dict[str, Any] = orjson.loads(subscription.document)
    caller = authentication.authenticated().caller
    if not may(caller, Right.INSPECT, Resource((subscription.tenant,))):
        del document["destination"]
    return document


def _found(subscription: str, stored: Statements) -> Subscription:
    """Return a subscription of the caller, or to a stream of the caller. Raises NotFound."""
    row = stored.row("subscription", id=subscription)
    if row is None:
        raise NotFound("The Subscription was not found.")
    found = Subscription._make(row)
    authentication.permit(found.resource)
    return found


def _callback(wanted: dict[str, Any]) -> str:
    callback = wanted.get("callback")
    if callback is None:
        raise Refused("No callback in the request")
    if not isinstance(callback, str) or callback not in KINDS:
        raise Refused(f"The callback {callback!s:.100} is not one of {', '.join(KINDS)}")
    return callback


def _destination(wanted: dict[str, Any], callback: str, token: str) -> str:
    """Return where to deliver. Without one, pubsub delivers under the caller's token.

    The token itself is stored nowhere; its SHA-256 stands for it.
    """
    destination = wanted.get("destination")
    if destination is None:
        destination = token if callback == "pubsub" else ""
    if not isinstance(destination, str) or len(destination) > MAX_DESTINATION:
        raise Refused(f"destination has to be text of at most {MAX_DESTINATION} characters")
    if any(ord(character) < 32 for character in destination):
        raise Refused("destination has a control character in it")
    if destination == token:
        return digest(token).hex()
    return destination
