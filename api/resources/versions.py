"""The versions of a Service Object: every document it ever had, and the way back to one."""

from __future__ import annotations

import orjson
from flask import Blueprint, Response

from api.documents.listing import with_listed
from api.documents.service_objects import current, etag, group_sources, members
from api.http.answers import answer
from api.http.authentication import needs, service_object
from api.resources.replacing import ATTEMPTS, detaches, expect, expect_no_template, put_in_force
from api.services import Services
from servioticy.changes import Changed
from servioticy.domain.access import Right
from servioticy.domain.documents.conditions import without_members
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.change_store import NewServiceObject
from servioticy.ports.service_objects import VersionKey
from servioticy.refusals import Conflict, NotFound, within

LARGEST = 2**31 - 1


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/versions` and what is below it."""
    routes = Blueprint("versions", __name__)

    @routes.get("/<service_object>/versions")
    @needs(Right.INSPECT)
    def versions(**_names: str) -> Response:
        key = service_object()
        found = current(key, services)
        every = services.ports.service_objects.versions(key)
        listed = [
            {"version": number, "createdAt": at, "active": number == found.version}
            for number, at in every
        ]
        return answer({"versions": listed}, 200, {"ETag": etag(found.version, found.revision)})

    @routes.get("/<service_object>/versions/<int:version>")
    @needs(Right.INSPECT)
    def read(version: int, **_names: str) -> Response:
        document = _document(service_object(), version, services)
        return answer(without_members(orjson.loads(document)))

    @routes.post("/<service_object>/versions/<int:version>/activate")
    @needs(Right.CHANGE)
    def activate(version: int, **_names: str) -> Response:
        for _ in range(ATTEMPTS):
            try:
                return _activated(service_object(), version, services)
            except Changed:
                continue
        raise Conflict("The Service Object is being changed by others all the time; try again")

    return routes


def _document(key: ServiceObjectKey, version: int, services: Services) -> bytes:
    wanted = VersionKey(*key, version)
    documents = services.ports.service_objects
    document = documents.document(wanted) if version <= LARGEST else None
    if document is None:
        raise NotFound(f"There is no version {version} of this Service Object.")
    return document


def _activated(key: ServiceObjectKey, version: int, services: Services) -> Response:
    """That version again, under its number; all that its groups named then may stay."""
    detaches()  # else it is only looked at where there is a template
    found = current(key, services)
    expect(found)
    expect_no_template(key, services)
    document = _document(key, version, services)
    if version == found.version:
        same = {"id": key.id, "updatedAt": found.updated_at, "version": version}
        return answer(same, 200, {"ETag": etag(found.version, found.revision)})
    definition = services.definitions.that_computes(key.id, version, document)
    before = services.definitions.of(key.id, found.version, found.document)
    more = len(definition.streams) - len(before.streams)
    new = NewServiceObject(
        id=key.id,
        tenant=key.tenant,
        public=definition.public,
        document=document,
        streams=tuple(each.ref.stream for each in definition.streams),
        group_sources=group_sources(definition, key.tenant, services, members(definition)),
        created_at=services.now(),
    )
    new = with_listed(new, services, keeps_fields=True)
    with services.quotas.adding(key.tenant, streams=more) as exceeded:
        within(exceeded)
        return put_in_force(new, definition, found, services, version)
