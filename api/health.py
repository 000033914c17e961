"""Whether requests can be served: for supervisors, without a token."""

from __future__ import annotations

from flask import Blueprint, Response

from api.answers import answer
from api.authentication import open_to_everybody
from api.services import Services


def blueprint(services: Services) -> Blueprint:
    """`/private/health`: 200 where Postgres and the broker answer, else 503 and which does not."""
    routes = Blueprint("health", __name__)

    @routes.get("/private/health")
    @open_to_everybody
    def health() -> Response:
        services.ports.history.progress(0)
        services.ports.log.end_offset(0)
        return answer({"status": "ok"})

    return routes
