"""Sensor Updates: accepting and reading them."""

from __future__ import annotations

import msgspec
from flask import Blueprint, Response

from api.http import authentication
from api.http.answers import data, stored
from api.http.authentication import needs
from api.http.bodies import json_body
from api.http.errors import NotFound, TooLarge, TooMany, within
from api.resources import histories
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents import BadDocument, parse_update
from servioticy.domain.documents.codes import TOO_FAR_AHEAD
from servioticy.domain.model import SensorUpdate, Stream
from servioticy.domain.records import UpdateRecord
from servioticy.domain.timing import too_far_ahead
from servioticy.domain.topics import largest_update


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}` and its `/lastUpdate`."""
    routes = Blueprint("updates", __name__)
    largest = largest_update(services.settings.requests.max_body_bytes)

    @routes.put("/<service_object>/streams/<stream>")
    @needs(Right.SEND)
    def accept(service_object: str, stream: str) -> Response:
        address, _ = authentication.stream()
        declared = services.definitions.stream(address, stream)
        update = _parsed(json_body(), declared)
        # Longer than what was sent, perhaps: 1e9 is kept as 1000000000.0
        if len(update.document) > largest:
            raise TooLarge
        ahead = services.settings.requests.max_future_seconds
        if too_far_ahead(update.timestamp, services.clock(), ahead):
            raise BadDocument(
                f"The lastUpdate {update.timestamp} is more than {ahead:g} seconds ahead of the "
                "platform's clock; it would silence what is computed from this stream",
                "/lastUpdate",
                TOO_FAR_AHEAD,
            )
        record = UpdateRecord(
            service_object, stream, update.timestamp, msgspec.Raw(update.document)
        )
        if services.put_off.is_full(address):
            raise TooMany(
                "Your updates come faster than they are computed: too many of them wait already"
            )
        within(services.quotas.send(address.tenant, 1, len(update.document)))
        services.ports.log.append(address.partition, record)
        return stored(update.document, 202)

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


def _parsed(content: bytes, declared: Stream | None) -> SensorUpdate:
    if declared is None:
        raise NotFound("This Service Object does not have this stream.")
    return parse_update(content, declared)
