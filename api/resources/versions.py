"""The versions of a Service Object: every document it ever had, and the way back to one."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint, Response

from api.documents.listing import with_listed
from api.documents.operators import check_operators
from api.documents.service_objects import CUSTOM, current, etag, group_sources, members
from api.documents.warming import warm_up
from api.http.answers import answer
from api.http.authentication import needs, service_object
from api.http.bodies import json_object
from api.http.warning_headers import warned
from api.resources.replacing import (
    detaches,
    expect_no_template,
    findings_of,
    on_the_newest,
    put_in_force,
    understood,
    warms,
)
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents.conditions import without_members
from servioticy.domain.model import ServiceObjectKey
from servioticy.domain.quotas import DOCUMENT_BYTES
from servioticy.ports.change_store import NewServiceObject
from servioticy.ports.service_objects import CurrentVersion, VersionKey
from servioticy.refusals import NotFound, within

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

    @routes.post("/<service_object>/versions")
    @needs(Right.CHANGE)
    @services.idempotency.once
    def save(**_names: str) -> Response:
        body, key = json_object(), service_object()
        return on_the_newest(key, services, lambda found: _saved(body, key, found, services))

    @routes.get("/<service_object>/versions/<int:version>")
    @needs(Right.INSPECT)
    def read(version: int, **_names: str) -> Response:
        document = without_members(orjson.loads(_document(service_object(), version, services)))
        document.pop(CUSTOM, None)  # it was stored with each version once
        return answer(document)

    @routes.post("/<service_object>/versions/<int:version>/activate")
    @needs(Right.CHANGE)
    def activate(version: int, **_names: str) -> Response:
        key = service_object()

        def activated(found: CurrentVersion) -> Response:
            return _activated(key, version, found, services)

        return on_the_newest(key, services, activated)

    return routes


def _document(key: ServiceObjectKey, version: int, services: Services) -> bytes:
    wanted = VersionKey(*key, version)
    documents = services.ports.service_objects
    document = documents.document(wanted) if version <= LARGEST else None
    if document is None:
        raise NotFound(f"There is no version {version} of this Service Object.")
    return document


def _saved(
    body: dict[str, Any], key: ServiceObjectKey, found: CurrentVersion, services: Services
) -> Response:
    """A version that is kept and not in force: all is looked at as if it were to be."""
    new, definition = understood(body, key, found, services)
    told, findings = findings_of(new, definition, found, services)
    with services.quotas.adding(key.tenant, **{DOCUMENT_BYTES: len(new.document)}) as exceeded:
        within(exceeded)
        number = services.ports.changes.save(new)
    place = {"Location": f"{services.base}/{key.id}/versions/{number}"}
    body = {"id": key.id, "version": number, "createdAt": new.created_at, "active": False}
    return answer(body | findings, 201, place | warned(told))


def _activated(
    key: ServiceObjectKey, version: int, found: CurrentVersion, services: Services
) -> Response:
    """That version again, under its number; all that its groups named then may stay."""
    detaches(), warms()  # else they are only looked at where they matter
    expect_no_template(key, services)
    document = _document(key, version, services)
    if version == found.version:
        same = {"id": key.id, "updatedAt": found.updated_at, "version": version}
        return answer(same, 200, {"ETag": etag(found.version, found.revision)})
    definition = services.definitions.that_computes(key.id, version, document)
    owners = check_operators(definition, key, services, version, again=True)
    before = services.definitions.of(key.id, found.version, found.document)
    if warms():
        warm_up(definition, before, owners, key, services)
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
