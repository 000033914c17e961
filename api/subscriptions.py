"""Subscriptions to a stream (contract, section 1.4)."""

from __future__ import annotations

import hashlib
import uuid
from typing import Any
from urllib.parse import quote

import orjson
from flask import Blueprint, Response, request

from api import authentication
from api.answers import answer, nothing
from api.bodies import json_object
from api.errors import NotAuthorized, NotFound, Refused
from api.services import Services
from servioticy.ports.catalog import Subscription

KINDS = ("pubsub", "websocket")
LONGEST_DESTINATION = 1000


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}/subscriptions` and `/subscriptions/{subscription}`."""
    routes = Blueprint("subscriptions", __name__)

    @routes.post("/<service_object>/streams/<stream>/subscriptions")
    def subscribe(service_object: str, stream: str) -> Response:
        _, stream_id = authentication.stream()
        asked, wanted = authentication.asked(), json_object()
        callback = _callback(wanted)
        destination = _destination(wanted, callback, asked.token)
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
        kept = services.catalog.subscribe(
            id_, asked.caller, stream_id, callback, destination, orjson.dumps(document), now
        )
        if not kept:
            raise Refused("Duplicated pubsub subscription")
        place = f"{services.base}{quote(request.path.rstrip('/'))}/{id_}"
        return answer({"id": id_, "createdAt": now}, 201, {"Location": place})

    @routes.get("/<service_object>/streams/<stream>/subscriptions")
    def listed(**_names: str) -> Response:
        """The owner of the stream sees all, others their own."""
        address, stream_id = authentication.stream()
        found = [
            _shown(document, tenant)
            for tenant, document in services.catalog.subscriptions(stream_id)
            if address.caller in (tenant, address.owner)
        ]
        return answer({"subscriptions": found})

    @routes.get("/subscriptions/<subscription>")
    def read(subscription: str) -> Response:
        found = _found(subscription, services)
        return answer(_shown(found.document, found.tenant))

    @routes.delete("/subscriptions/<subscription>")
    def drop(subscription: str) -> Response:
        _found(subscription, services)
        services.catalog.unsubscribe(subscription)
        return nothing()

    return routes


def _shown(document: bytes, tenant: int) -> dict[str, Any]:
    """Where it goes to is for its own tenant to know: it may be a token."""
    shown: dict[str, Any] = orjson.loads(document)
    if tenant != authentication.asked().caller:
        del shown["destination"]
    return shown


def _found(subscription: str, services: Services) -> Subscription:
    """A subscription of the caller, or to one of the caller's streams."""
    found = services.catalog.subscription(subscription)
    if found is None:
        raise NotFound("The Subscription was not found.")
    if authentication.asked().caller not in (found.tenant, found.owner):
        raise NotAuthorized
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
        return hashlib.sha256(token.encode()).hexdigest()
    return destination
