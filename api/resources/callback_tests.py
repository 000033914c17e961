"""The test button of HTTP callbacks: an update is made up, and delivery sends it once, at once."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import orjson
from flask import Blueprint, Response

from api.http.answers import answer
from api.http.authentication import needs
from api.resources.callbacks import owned
from api.services import Services
from servioticy.domain.access import Right
from servioticy.ports.callback_tests import FORGET_SECONDS
from servioticy.ports.statements import Row
from servioticy.refusals import Conflict, NotFound

MOST_WAITING = 10
"""Tests of a tenant that have no answer yet."""
SAMPLES = {"number": 0, "boolean": False, "string": "test", "geo_point": "0,0"}


def blueprint(services: Services) -> Blueprint:
    """`/subscriptions/{subscription}/test`."""
    routes = Blueprint("callback_tests", __name__)
    subscriptions = services.ports.statements("subscriptions")
    stored = services.ports.statements("callback_tests")

    @routes.post("/subscriptions/<subscription>/test")
    @needs(Right.SUBSCRIBE)
    def test(subscription: str) -> Response:
        """Ask for it; what came of it is read from the same address."""
        whose = {"subscription": subscription, "tenant": owned(subscription, subscriptions).tenant}
        channels = stored.row("channels", **whose)
        if channels is None:
            raise NotFound("The stream of this Subscription is not there any more.")
        id_, now = uuid.uuid4().hex, services.now()
        asked = stored.rows(
            "ask",
            id=id_,
            document=orjson.dumps(_made_up(channels[0] or {}, now)).decode(),
            now=now,
            forgotten=now - FORGET_SECONDS * 1000,
            most=MOST_WAITING,
            **whose,
        )
        if not asked:
            raise Conflict("A test of it, or too many of yours, have no answer yet")
        place = f"{services.base}/subscriptions/{subscription}/test"
        return answer({"id": id_, "state": "asked"}, 202, {"Location": place})

    @routes.get("/subscriptions/<subscription>/test")
    @needs(Right.READ)
    def read(subscription: str) -> Response:
        """Tell what came of the last test."""
        tenant = owned(subscription, subscriptions).tenant
        row = stored.row("last", subscription=subscription, tenant=tenant)
        if row is None:
            raise NotFound("This Subscription has not been tested.")
        return answer(_told(row, services.now()))

    return routes


def _told(row: Row, now: int) -> dict[str, Any]:
    id_, document, asked_at, sent_at, status, reason, milliseconds = row
    told = {"id": id_, "askedAt": asked_at, "update": orjson.Fragment(document)}
    if status is not None:
        answered = {"status": status, "reason": reason, "milliseconds": milliseconds}
        return told | {"state": "answered"} | answered
    if asked_at < now - FORGET_SECONDS * 1000:
        return told | {"state": "lost"}
    return told | {"state": "asked" if sent_at is None else "sent"}


def _made_up(channels: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Return an update that says of itself that it is a test."""
    values = {
        name: {"current-value": _sample(each.get("type"))} for name, each in channels.items()
    }
    return {"channels": values, "lastUpdate": now, "test": True}


def _sample(type_: Any) -> Any:
    """Return a value of a type, as documents write it; arrays are empty."""
    return SAMPLES.get(str(type_).strip().lower(), [])
