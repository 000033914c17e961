"""Why did nothing come out? How the computations of a composite stream ended."""

from __future__ import annotations

import orjson
from flask import Blueprint, Response

from api import authentication
from api.answers import answer
from api.services import Services


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}/status`."""
    routes = Blueprint("status", __name__)

    @routes.get("/<service_object>/streams/<stream>/status")
    def status(**_names: str) -> Response:
        address, stream_id = authentication.stream()
        headers = services.reads.wait(address.partition)
        verdicts = [
            {"verdict": verdict, "count": count, "last": orjson.Fragment(last)}
            for verdict, count, last in services.history.verdicts(stream_id)
        ]
        return answer({"verdicts": verdicts}, 200, headers)

    return routes
