"""Batches of Sensor Updates: many accepted, or refused one by one, with one answer."""

from __future__ import annotations

from collections.abc import Iterable

from flask import Blueprint, Response, request

from api.documents.batch_hints import hints
from api.documents.batches import Target, form, sort
from api.http import authentication
from api.http.answers import answer
from api.http.authentication import needs
from api.http.bodies import body
from api.http.errors import NoStream, Refused, within
from api.http.warning_headers import warned
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.batches.items import Item, Unreadable, bounded
from servioticy.domain.documents.updates import UpdateReader
from servioticy.domain.model import StreamRef
from servioticy.ports.addresses import Address

ITEM_BYTES = 64
"""What an item counts beside its own bytes: each costs time, however short it is."""
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
        target = _target(address, stream, services)
        if target is None:
            raise NoStream
        return _accepted(_items(origin, services), {origin: target}, services)

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
        targets = {}
        for id_, stream, public, version, partition, stream_id in rows:
            address = Address(caller, id_, caller, public, version, partition, stream_id)
            target = _target(address, stream, services)
            if target is not None:
                targets[StreamRef(id_, stream)] = target
        return _accepted(items, targets, services)

    return routes


def _items(origin: StreamRef | None, services: Services) -> list[Item | Unreadable]:
    """Return the items of the present request's body. Raises where it cannot be read."""
    unit = request.args.get("timestamps", "s")
    if unit not in UNITS:
        raise Refused(f"timestamps has to be one of {', '.join(UNITS)}")
    return bounded(form(services, milliseconds=UNITS[unit])(body(), origin))


def _target(address: Address, stream: str, services: Services) -> Target | None:
    declared = services.definitions.stream(address, stream)
    return None if declared is None else Target(address, UpdateReader(declared))


def _accepted(
    items: Iterable[Item | Unreadable], targets: dict[StreamRef, Target], services: Services
) -> Response:
    """Append what is right, in its order, and answer once the broker has all of it."""
    found = sort(items, targets, services.accepting.fault)
    addresses = {each.address.partition: each.address for each in targets.values()}
    number = len(found.taken)
    within(services.accepting.count(addresses.values(), number, found.bytes + ITEM_BYTES * number))
    if number:
        services.ports.log.append_all([each.record() for each in found.taken])
    headers = warned(hints(found.taken, services.accepting.hints))
    body = {"accepted": number, "refused": len(found.refused)}
    if not found.refused:
        return answer(body, 202, headers)
    return answer(body | {"items": found.refused}, 207, headers)
