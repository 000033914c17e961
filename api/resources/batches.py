"""Batches of Sensor Updates: many accepted, or refused one by one, with one answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from flask import Blueprint, Response, request

from api.http import authentication
from api.http.answers import answer
from api.http.authentication import needs
from api.http.bodies import body
from api.http.content_types import sent
from api.http.warning_headers import warned
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.batches.forms import DEFAULT, FORMS, Way
from servioticy.domain.batches.items import Item, Unreadable
from servioticy.domain.model import Stream, StreamRef
from servioticy.domain.traces import HEADER, MAKING
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
        declared = services.definitions.stream(address, stream)
        if declared is None:
            raise NoStream
        items = services.batches.of_one(*_sent(services), declared)
        return _accepted(items, {StreamRef(service_object, stream): address}, services)

    @routes.post("/updates")
    @needs(Right.SEND)
    @services.idempotency.once
    def of_many() -> Response:
        addresses: dict[StreamRef, Address] = {}

        def declared(wanted: Collection[StreamRef]) -> dict[StreamRef, Stream]:
            addresses.update(_addresses(wanted))
            return services.ingest.declared(addresses)

        items = services.batches.of_many(*_sent(services), declared)
        if not addresses:
            addresses.update(_addresses({x.origin for x in items if isinstance(x, Item)}))
        return _accepted(items, addresses, services)

    def _addresses(wanted: Collection[StreamRef]) -> dict[StreamRef, Address]:
        """Return where those are that the caller may send to."""
        caller = authentication.authenticated().caller
        named = [each for each in wanted if "\0" not in "".join(each)]
        rows = streams.rows(
            "streams",
            tenant=caller,
            service_objects=[each.service_object for each in named],
            streams=[each.stream for each in named],
        )
        return {
            StreamRef(id_, stream): Address(caller, id_, caller, public, version, place, stream_id)
            for id_, stream, public, version, place, stream_id in rows
        }

    return routes


def _sent(services: Services) -> tuple[str, Way, bytes]:
    """Return form and body of the present request, and how its times are understood."""
    unit = request.args.get("timestamps", "s")
    if unit not in UNITS:
        raise Refused(f"timestamps has to be one of {', '.join(UNITS)}")
    form = sent({each: each for each in FORMS}, DEFAULT)
    return form, Way(services.clock(), UNITS[unit]), body()


def _accepted(
    items: Sequence[Item | Unreadable], addresses: Mapping[StreamRef, Address], services: Services
) -> Response:
    """Take what is right, in its order, and answer once the broker has all of it."""
    trace = MAKING.of(request.headers.get(HEADER))
    found = services.ingest.take_batch(items, addresses, trace)
    headers = warned(found.hints)
    body = {"accepted": len(found.accepted), "refused": len(found.refused)}
    if not found.refused:
        return answer(body, 202, headers)
    return answer(body | {"items": found.refused}, 207, headers)
