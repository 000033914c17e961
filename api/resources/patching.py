"""Changing a part of a Service Object: as a PUT of the whole document with that part changed."""

from __future__ import annotations

from flask import Blueprint, Response

from api.documents.service_objects import to_public
from api.http import authentication
from api.http.authentication import needs
from api.http.bodies import json_object
from api.http.content_types import sent
from api.resources.replacing import on_the_newest, put
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents.merging import merged

MERGE_PATCH = "application/merge-patch+json"


def blueprint(services: Services) -> Blueprint:
    """`PATCH /{service_object}`."""
    routes = Blueprint("patching", __name__)

    @routes.patch("/<service_object>")
    @needs(Right.CHANGE)
    def patch(**_names: str) -> Response:
        sent({MERGE_PATCH: True, "application/json": True}, MERGE_PATCH)
        body, key = json_object(), authentication.service_object()
        return on_the_newest(
            key,
            services,
            lambda found: put(merged(to_public(found), body), key, found, services),
        )

    return routes
