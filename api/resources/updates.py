"""Sensor Updates: accepting and reading them."""

from __future__ import annotations

import msgspec
from flask import Blueprint, Response

from api.http import authentication
from api.http.answers import data, stored
from api.http.authentication import needs
from api.http.bodies import json_body
from api.http.errors import NoStream, TooLarge, within
from api.http.warning_headers import warned
from api.resources import histories
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents import parse_update
from servioticy.domain.documents.codes import TOO_MUCH
from servioticy.domain.records import UpdateRecord


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}` and its `/lastUpdate`."""
    routes = Blueprint("updates", __name__)

    @routes.put("/<service_object>/streams/<stream>")
    @needs(Right.SEND)
    def accept(service_object: str, stream: str) -> Response:
        address, key = authentication.stream()
        declared = services.definitions.stream(address, stream)
        if declared is None:
            raise NoStream
        update = parse_update(json_body(), declared)
        fault = services.accepting.fault(update)
        if fault is not None:
            raise TooLarge if fault.code == TOO_MUCH else fault
        record = UpdateRecord(
            service_object, stream, update.timestamp, msgspec.Raw(update.document)
        )
        within(services.accepting.count((address,), 1, len(update.document)))
        services.ports.log.append(address.partition, record)
        hints = services.accepting.hints.of(key, update, declared)
        return stored(update.document, 202, warned(hints))

    @routes.get("/<service_object>/streams/<stream>")
    @needs(Right.READ)
    def read(**_names: str) -> Response:
        address, stream = authentication.stream()
        headers = services.reads.wait(address)
        return histories.whole(services.ports.history, stream, histories.shown(), headers)

    @routes.get("/<service_object>/streams/<stream>/lastUpdate")
    @needs(Right.READ)
    def last(**_names: str) -> Response:
        address, stream = authentication.stream()
        headers = services.reads.wait(address)
        update = services.ports.history.last_update(stream)
        return data(() if update is None else (histories.shown()(update),), headers)

    return routes
