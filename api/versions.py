"""The versions of a Service Object: every document it ever had, and the way back to one."""

from __future__ import annotations

from flask import Blueprint, Response

from api import authentication
from api.answers import answer, stored
from api.documents import current, etag, members, sources
from api.errors import Conflict, NotFound
from api.replacing import ATTEMPTS, expect, put_in_force
from api.services import Services
from servioticy.changes import Changed
from servioticy.ports.catalog import NewServiceObject

LARGEST = 2**31 - 1


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/versions` and what is below it."""
    routes = Blueprint("versions", __name__)

    @routes.get("/<service_object>/versions")
    def versions(service_object: str) -> Response:
        found = current(service_object, services)
        listed = [
            {"version": number, "createdAt": at, "active": number == found.version}
            for number, at in services.catalog.versions(service_object)
        ]
        return answer({"versions": listed}, 200, {"ETag": etag(found.version, found.revision)})

    @routes.get("/<service_object>/versions/<int:version>")
    def read(service_object: str, version: int) -> Response:
        return stored(_document(service_object, version, services))

    @routes.post("/<service_object>/versions/<int:version>/activate")
    def activate(service_object: str, version: int) -> Response:
        for _ in range(ATTEMPTS):
            try:
                return _activated(service_object, version, services)
            except Changed:
                continue
        raise Conflict("The Service Object is being changed by others all the time; try again")

    return routes


def _document(service_object: str, version: int, services: Services) -> bytes:
    document = services.catalog.document(service_object, version) if version <= LARGEST else None
    if document is None:
        raise NotFound(f"There is no version {version} of this Service Object.")
    return document


def _activated(service_object: str, version: int, services: Services) -> Response:
    """That version again, under its number; all that its groups named then may stay."""
    found = current(service_object, services)
    expect(found)
    document = _document(service_object, version, services)
    if version == found.version:
        same = {"id": service_object, "updatedAt": found.updated_at, "version": version}
        return answer(same, 200, {"ETag": etag(found.version, found.revision)})
    definition = services.definitions.that_computes(service_object, version, document)
    caller = authentication.asked().caller
    new = NewServiceObject(
        id=service_object,
        tenant=caller,
        public=definition.public,
        document=document,
        streams=tuple(each.ref.stream for each in definition.streams),
        group_sources=sources(definition, caller, services, members(definition)),
        created_at=services.now(),
    )
    return put_in_force(new, definition, found, services, version)
