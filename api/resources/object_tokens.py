"""Tokens for devices: each may act on its own Service Object only."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response

from api.http.answers import answer
from api.http.authentication import authenticated, needs, service_object
from api.http.bodies import optional_object
from api.resources.tokens import overlap_seconds
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.tokens import digest, new_token
from servioticy.refusals import NotFound


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/api_token`."""
    routes = Blueprint("object_tokens", __name__)
    stored = services.ports.statements("object_tokens")

    @routes.post("/<service_object>/api_token")
    @needs(Right.CHANGE)
    def renew(**_names: str) -> Response:
        """Make a new token; the one before it is good no longer, or for a while yet if asked.

        It is for all that devices do, whatever else its maker may; and for no longer than the
        maker's own token, or that would come to more than was given.
        """
        key, token = service_object(), new_token()
        overlap = overlap_seconds(optional_object())
        maker = authenticated().address.token_id
        values = {"tenant": key.tenant, "service_object": key.id, "overlap": overlap}
        row = stored.row("replace", digest=digest(token), maker=maker, **values)
        if row is None:
            raise NotFound("The Service Object was not found.")
        body: dict[str, Any] = {"id": key.id, "api_token": token}
        if row[0] is not None:
            body["expiresAt"] = int(1000 * row[0].timestamp())
        return answer(body, 201)

    return routes
