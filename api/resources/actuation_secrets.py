"""The secrets that sign the requests with which actuations are delivered."""

from __future__ import annotations

from flask import Blueprint, Response

from api.http.answers import answer
from api.http.authentication import needs, service_object
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.webhook_secrets import exchanged, new_secret
from servioticy.refusals import Conflict, NotFound


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/actuation_secret`."""
    routes = Blueprint("actuation_secrets", __name__)
    stored = services.ports.actuations

    @routes.post("/<service_object>/actuation_secret")
    @needs(Right.CHANGE)
    def renew(**_names: str) -> Response:
        """Make a new secret; the one before signs along for a day."""
        key, secret = service_object(), new_secret()
        called = stored.callback(key)
        if called is None:
            raise NotFound("The document of this Service Object has no actuationCallback.")
        secrets = exchanged(called.secrets, secret, services.now())
        if not stored.exchange_secrets(key, called.secrets, secrets):
            raise Conflict("The secret has been changed meanwhile; try again")
        return answer({"id": key.id, "secret": secret}, 201)

    return routes
