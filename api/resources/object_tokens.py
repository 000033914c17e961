"""Tokens for devices: each may act on its own Service Object only."""

from __future__ import annotations

from flask import Blueprint, Response

from api.http.answers import answer
from api.http.authentication import needs, service_object
from api.http.errors import NotFound
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.tokens import digest, new_token


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/api_token`."""
    routes = Blueprint("object_tokens", __name__)
    stored = services.ports.statements("object_tokens")

    @routes.post("/<service_object>/api_token")
    @needs(Right.CHANGE)
    def renew(**_names: str) -> Response:
        """Make a new token; the one before it is good no longer."""
        key, token = service_object(), new_token()
        own = {"tenant": key.tenant, "service_object": key.id}
        if not stored.rows("replace", digest=digest(token), **own):
            raise NotFound("The Service Object was not found.")
        return answer({"id": key.id, "api_token": token}, 201)

    return routes
