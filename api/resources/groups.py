"""The groups of a Service Object: who belongs now, and since when."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint, Response

from api.documents.membership import who_belongs
from api.documents.service_objects import current, etag
from api.http.answers import answer
from api.http.authentication import needs, service_object
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.documents.conditions import WHERE, parse_conditions
from servioticy.refusals import NotFound


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/groups/{group}`."""
    routes = Blueprint("groups", __name__)
    stored = services.ports.statements("dynamic_groups")

    @routes.get("/<service_object>/groups/<group>")
    @needs(Right.INSPECT)
    def read(group: str, **_names: str) -> Response:
        key = service_object()
        found = current(key, services)
        definition = services.definitions.of(key.id, found.version, found.document)
        members = next((each for each in definition.groups if each.name == group), None)
        if members is None:
            raise NotFound("This Service Object does not have this group.")
        since = stored.row("since", **key._asdict(), version=found.version)
        body: dict[str, Any] = {
            "name": group,
            "stream": members.stream,
            "members": list(members.service_objects),
            "version": found.version,
            "since": since[0] if since else found.updated_at,
        }
        content = orjson.loads(found.document)["groups"][group]
        if WHERE in content:
            wanted = who_belongs(parse_conditions(content), key, services)
            body |= {"where": content[WHERE], "upToDate": wanted == body["members"]}
        return answer(body, 200, {"ETag": etag(found.version, found.revision)})

    return routes
