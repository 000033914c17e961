"""Sensor Updates: accepting and reading them."""

from __future__ import annotations

from flask import Blueprint, Response, request

from api.http import authentication
from api.http.answers import data, stored
from api.http.authentication import needs
from api.http.bodies import json_body
from api.http.warning_headers import warned
from api.resources import histories
from api.services import Services
from ingest.updates import Offered
from servioticy.domain.access import Right
from servioticy.domain.model import StreamRef
from servioticy.domain.traces import HEADER, MAKING


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}` and its `/lastUpdate`."""
    routes = Blueprint("updates", __name__)

    @routes.put("/<service_object>/streams/<stream>")
    @needs(Right.SEND)
    def accept(service_object: str, stream: str) -> Response:
        address, _ = authentication.stream()
        trace = MAKING.of(request.headers.get(HEADER))
        offered = Offered(StreamRef(service_object, stream), json_body(), trace)
        taken = services.ingest.take_one(address, offered)
        return stored(taken.document, 202, warned(taken.hints))

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
