"""Tokens for devices: each may act on its own Service Object only."""

from __future__ import annotations

from flask import Blueprint, Response

from api.http.answers import answer
from api.http.authentication import needs, service_object
from api.http.bodies import optional_object
from api.http.errors import NotFound
from api.resources.tokens import overlap_seconds
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
        """Make a new token; the one before it is good no longer, or for a while yet if asked."""
        key, token = service_object(), new_token()
        overlap = overlap_seconds(optional_object())
        values = {"tenant": key.tenant, "service_object": key.id, "overlap": overlap}
        if not stored.rows("replace", digest=digest(token), **values):
            raise NotFound("The Service Object was not found.")
        return answer({"id": key.id, "api_token": token}, 201)

    return routes
