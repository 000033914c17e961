"""Changing a part of a Service Object: as a PUT of the whole document with that part changed."""

from __future__ import annotations

from flask import Blueprint, Response

from api.documents.service_objects import to_public
from api.http import authentication
from api.http.authentication import needs
from api.http.bodies import JSON_TYPES, json_object
from api.resources.replacing import on_the_newest, put
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents.merging import merged

TYPES = JSON_TYPES | {"application/merge-patch+json": True}


def blueprint(services: Services) -> Blueprint:
    """`PATCH /{service_object}`."""
    routes = Blueprint("patching", __name__)

    @routes.patch("/<service_object>")
    @needs(Right.CHANGE)
    def patch(**_names: str) -> Response:
        body, key = json_object(TYPES), authentication.service_object()
        return on_the_newest(
            key,
            services,
            lambda found: put(merged(to_public(found), body), key, found, services),
        )

    return routes
