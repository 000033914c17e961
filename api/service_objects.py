"""Service Objects: creating, listing, reading (contract, sections 1.1 and 1.2)."""

from __future__ import annotations

import uuid

from flask import Blueprint, Response

from api import authentication
from api.answers import answer
from api.bodies import json_object
from api.documents import checked, current, custom_fields, etag, kept, shown, sources
from api.services import Services
from api.warnings import warnings
from servioticy import changes
from servioticy.ports.catalog import NewServiceObject

HIDDEN = ("userId", "data")


def blueprint(services: Services) -> Blueprint:
    """`/` and `/{service_object}`."""
    routes = Blueprint("service_objects", __name__)

    @routes.post("/")
    def create() -> Response:
        document = json_object()
        now, caller = services.now(), authentication.asked().caller
        id_ = new_id(now)
        definition = checked(document, id_, services)
        new = NewServiceObject(
            id=id_,
            tenant=caller,
            public=definition.public,
            document=kept(document, id_, now, now),
            streams=tuple(each.ref.stream for each in definition.streams),
            group_sources=sources(definition, caller, services),
            created_at=now,
            custom_fields=custom_fields(document),
        )
        findings = warnings(definition, caller, services)
        changes.create(new, services.catalog, services.log)
        place = {"Location": f"{services.base}/{id_}", "ETag": etag(1, 1)}
        return answer({"id": id_, "createdAt": now} | findings, 201, place)

    @routes.get("/")
    def ids() -> Response:
        return answer(services.catalog.ids(authentication.asked().caller))

    @routes.get("/<service_object>")
    def read(service_object: str) -> Response:
        found = current(service_object, services)
        document = {key: value for key, value in shown(found).items() if key not in HIDDEN}
        return answer(document, 200, {"ETag": etag(found.version, found.revision)})

    return routes


def new_id(now: int) -> str:
    """A new id, letters and digits only: 13 digits of milliseconds and 32 of chance."""
    return f"{now:013d}{uuid.uuid4().hex}"
