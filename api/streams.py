"""The streams of a Service Object."""

from __future__ import annotations

from flask import Blueprint, Response

from api.answers import answer, nothing
from api.authentication import needs, service_object
from api.documents import current, to_public
from api.services import Services
from servioticy.domain.access import Right


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams`."""
    routes = Blueprint("streams", __name__)

    @routes.get("/<service_object>/streams")
    @needs(Right.READ)
    def streams(**_names: str) -> Response:
        declared = to_public(current(service_object(), services))["streams"]
        if not declared:
            return nothing()
        named = [{"name": name} | content | {"name": name} for name, content in declared.items()]
        return answer({"streams": named})

    return routes
