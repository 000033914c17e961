"""Service Objects: creating, listing, reading."""

from __future__ import annotations

import uuid

from flask import Blueprint, Response

from api.documents.actions import check_targets
from api.documents.listing import with_listed
from api.documents.membership import with_who_belongs
from api.documents.operators import check_operators
from api.documents.service_objects import (
    current,
    custom_fields,
    etag,
    group_sources,
    parse_and_check,
    to_public,
    to_stored,
)
from api.documents.warnings import warnings
from api.http.answers import answer
from api.http.authentication import authenticated, needs, service_object
from api.http.bodies import json_object
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents.actions import CALLBACK
from servioticy.domain.model import ServiceObjectKey
from servioticy.domain.quotas import DOCUMENT_BYTES
from servioticy.domain.tokens import digest, new_token
from servioticy.ports.change_store import NewServiceObject
from servioticy.refusals import within

HIDDEN = ("userId", "data")
"""To others also whom it calls: there may be a password in that."""


def blueprint(services: Services) -> Blueprint:
    """`/` and `/{service_object}`."""
    routes = Blueprint("service_objects", __name__)

    @routes.post("/")
    @needs(Right.CREATE)
    @services.idempotency.once
    def create() -> Response:
        now, caller = services.now(), authenticated().caller
        id_, token = new_id(now), new_token()
        key = ServiceObjectKey(caller, id_)
        document = with_who_belongs(json_object(), key, services)
        definition = parse_and_check(document, key, services)
        check_targets(document, key, services)
        owners = check_operators(definition, key, services)
        new = NewServiceObject(
            id=id_,
            tenant=caller,
            public=definition.public,
            document=to_stored(document, id_, now, now),
            streams=tuple(each.ref.stream for each in definition.streams),
            group_sources=group_sources(definition, caller, services),
            created_at=now,
            custom_fields=custom_fields(document),
            token_digest=digest(token),
            operator_owners=owners,
        )
        findings = warnings(definition, new.document, caller, services)
        more = {"documents": 1, "streams": len(new.streams), DOCUMENT_BYTES: new.size}
        new = with_listed(new, services)
        with services.quotas.adding(caller, **more) as exceeded:
            within(exceeded)
            services.ports.changes.create(new)
        place = {"Location": f"{services.base}/{id_}", "ETag": etag(1, 1)}
        body = {"id": id_, "api_token": token, "createdAt": now} | findings
        return answer(body, 201, place)

    @routes.get("/")
    @needs(Right.LIST)
    def ids() -> Response:
        return answer(services.ports.service_objects.ids(authenticated().caller))

    @routes.get("/<service_object>")
    @needs(Right.READ)
    def read(**_names: str) -> Response:
        key = service_object()
        found, is_own = current(key, services), authenticated().caller == key.tenant
        hidden = HIDDEN if is_own else (*HIDDEN, CALLBACK)
        document = {key: value for key, value in to_public(found).items() if key not in hidden}
        return answer(document, 200, {"ETag": etag(found.version, found.revision)})

    return routes


def new_id(now: int) -> str:
    """Return a new id, letters and digits only: 13 digits of milliseconds and 32 of chance."""
    return f"{now:013d}{uuid.uuid4().hex}"
