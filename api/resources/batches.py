"""Batches of Sensor Updates: many accepted, or refused one by one, with one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from flask import Blueprint, Response, request

from api.documents.forms import form
from api.http import authentication
from api.http.answers import answer
from api.http.authentication import needs
from api.http.bodies import body
from api.http.warning_headers import warned
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.batches.items import Item, Unreadable, bounded
from servioticy.domain.model import StreamRef
from servioticy.ports.addresses import Address
from servioticy.refusals import NoStream, Refused

UNITS = {"s": False, "ms": True}


def blueprint(services: Services) -> Blueprint:
    """`POST /{service_object}/streams/{stream}/updates`, and `/updates` for many streams."""
    routes = Blueprint("batches", __name__)
    streams = services.ports.statements("batches")

    @routes.post("/<service_object>/streams/<stream>/updates")
    @needs(Right.SEND)
    @services.idempotency.once
    def of_one(service_object: str, stream: str) -> Response:
        address, _ = authentication.stream()
        origin = StreamRef(service_object, stream)
        if services.definitions.stream(address, stream) is None:
            raise NoStream
        return _accepted(_items(origin, services), {origin: address}, services)

    @routes.post("/updates")
    @needs(Right.SEND)
    @services.idempotency.once
    def of_many() -> Response:
        items = _items(None, services)
        caller = authentication.authenticated().caller
        wanted = {each.origin for each in items if isinstance(each, Item)}
        named = [each for each in wanted if "\0" not in "".join(each)]
        rows = streams.rows(
            "streams",
            tenant=caller,
            service_objects=[each.service_object for each in named],
            streams=[each.stream for each in named],
        )
        addresses = {
            StreamRef(id_, stream): Address(caller, id_, caller, public, version, place, stream_id)
            for id_, stream, public, version, place, stream_id in rows
        }
        return _accepted(items, addresses, services)

    return routes


def _items(origin: StreamRef | None, services: Services) -> list[Item | Unreadable]:
    """Return the items of the present request's body. Raises where it cannot be read."""
    unit = request.args.get("timestamps", "s")
    if unit not in UNITS:
        raise Refused(f"timestamps has to be one of {', '.join(UNITS)}")
    return bounded(form(services, milliseconds=UNITS[unit])(body(), origin))


def _accepted(
    items: Sequence[Item | Unreadable], addresses: Mapping[StreamRef, Address], services: Services
) -> Response:
    """Take what is right, in its order, and answer once the broker has all of it."""
    found = services.ingest.take_batch(items, addresses)
    headers = warned(found.hints)
    body = {"accepted": len(found.accepted), "refused": len(found.refused)}
    if not found.refused:
        return answer(body, 202, headers)
    return answer(body | {"items": found.refused}, 207, headers)
