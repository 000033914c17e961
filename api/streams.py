"""The streams of a Service Object."""

from __future__ import annotations

from flask import Blueprint, Response

from api.answers import answer, nothing
from api.documents import current, shown
from api.services import Services


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams`."""
    routes = Blueprint("streams", __name__)

    @routes.get("/<service_object>/streams")
    def streams(service_object: str) -> Response:
        declared = shown(current(service_object, services))["streams"]
        if not declared:
            return nothing()
        named = [{"name": name} | content | {"name": name} for name, content in declared.items()]
        return answer({"streams": named})

    return routes
