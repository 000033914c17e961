"""Subscriptions to a stream (contract, section 1.4)."""

from __future__ import annotations

import uuid
from typing import Any
from urllib.parse import quote

import orjson
from flask import Blueprint, Response, request

from api import authentication
from api.answers import answer, nothing
from api.authentication import needs
from api.bodies import json_object
from api.errors import NotFound, Refused
from api.services import Services
from servioticy.domain.access import Resource, Right, may
from servioticy.domain.tokens import digest
from servioticy.ports.subscriptions import NewSubscription, Subscription

KINDS = ("pubsub", "websocket")
LONGEST_DESTINATION = 1000


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}/subscriptions` and `/subscriptions/{subscription}`."""
    routes = Blueprint("subscriptions", __name__)

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
        new = NewSubscription(
            id_, caller.caller, key, callback, destination, orjson.dumps(document), now
        )
        if not services.ports.subscriptions.subscribe(new):
            raise Refused("Duplicated pubsub subscription")
        place = f"{services.base}{quote(request.path.rstrip('/'))}/{id_}"
        return answer({"id": id_, "createdAt": now}, 201, {"Location": place})

    @routes.get("/<service_object>/streams/<stream>/subscriptions")
    @needs(Right.READ)
    def listed(**_names: str) -> Response:
        """The owner of the stream sees all, others their own."""
        address, key = authentication.stream()
        found = [
            _to_public(each)
            for each in services.ports.subscriptions.of_stream(key)
            if may(address.caller, Right.READ, each.resource)
        ]
        return answer({"subscriptions": found})

    @routes.get("/subscriptions/<subscription>")
    @needs(Right.READ)
    def read(subscription: str) -> Response:
        return answer(_to_public(_found(subscription, services)))

    @routes.delete("/subscriptions/<subscription>")
    @needs(Right.SUBSCRIBE)
    def drop(subscription: str) -> Response:
        found = _found(subscription, services)
        services.ports.subscriptions.unsubscribe(found.tenant, subscription)
        return nothing()

    return routes


def _to_public(subscription: Subscription) -> dict[str, Any]:
    """Where it goes to is for its own tenant to know: it may be a token."""
    document: dict[str, Any] = orjson.loads(subscription.document)
    caller = authentication.authenticated().caller
    if not may(caller, Right.INSPECT, Resource((subscription.tenant,))):
        del document["destination"]
    return document


def _found(subscription: str, services: Services) -> Subscription:
    """A subscription of the caller, or to one of the caller's streams."""
    found = services.ports.subscriptions.subscription(subscription)
    if found is None:
        raise NotFound("The Subscription was not found.")
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
    """Where to deliver. Without one, pubsub delivers under the caller's token.

    The token itself is stored nowhere; its SHA-256 stands for it.
    """
    destination = wanted.get("destination")
    if destination is None:
        destination = token if callback == "pubsub" else ""
    if not isinstance(destination, str) or len(destination) > LONGEST_DESTINATION:
        raise Refused(f"destination has to be text of at most {LONGEST_DESTINATION} characters")
    if any(ord(character) < 32 for character in destination):
        raise Refused("destination has a control character in it")
    if destination == token:
        return digest(token).hex()
    return destination
