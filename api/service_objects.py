"""Service Objects: creating, listing, reading (contract, sections 1.1 and 1.2)."""

from __future__ import annotations

import uuid
from typing import Any

import orjson
from flask import Blueprint, Response, request

from api import authentication
from api.answers import answer
from api.bodies import json_object
from api.errors import NotAuthorized, NotFound, Refused
from api.services import Services
from servioticy import changes
from servioticy.documents import parse_service_object
from servioticy.model import Definition, StreamRef
from servioticy.ports import NewServiceObject

OURS = ("id", "userId", "public", "createdAt", "updatedAt")
"""Fields that the platform writes; a body that has them does not override them."""
HIDDEN = ("userId", "data")


def blueprint(services: Services) -> Blueprint:
    """`/` and `/{service_object}`."""
    routes = Blueprint("service_objects", __name__)

    @routes.post("/")
    def create() -> Response:
        document = json_object()
        now, caller = services.now(), authentication.asked().caller
        id_ = new_id(now)
        definition = parse_service_object(document, id_, services.argument_names)
        problems = services.check(definition)
        if problems:
            raise Refused("; ".join(problems))
        new = NewServiceObject(
            id=id_,
            tenant=caller,
            public=definition.public,
            document=orjson.dumps(_kept(document, definition, now)),
            streams=tuple(each.ref.stream for each in definition.streams),
            group_sources=_sources(definition, caller, services),
            created_at=now,
        )
        changes.create(new, services.catalog, services.log)
        return answer({"id": id_, "createdAt": now}, 201, {"Location": f"{request.host_url}{id_}"})

    @routes.get("/")
    def ids() -> Response:
        return answer(services.catalog.ids(authentication.asked().caller))

    @routes.get("/<service_object>")
    def read(**_names: str) -> Response:
        document = whole_document(services)
        return answer({key: value for key, value in document.items() if key not in HIDDEN})

    return routes


def new_id(now: int) -> str:
    """A new id, letters and digits only: 13 digits of milliseconds and 32 of chance."""
    return f"{now:013d}{uuid.uuid4().hex}"


def whole_document(services: Services) -> dict[str, Any]:
    """The document in force of the Service Object that the request names."""
    address = authentication.service_object()
    text = services.catalog.document(address.service_object or "", address.version)
    if text is None:
        raise NotFound("The Service Object was not found.")
    document: dict[str, Any] = orjson.loads(text)
    return document


def _kept(document: dict[str, Any], definition: Definition, now: int) -> dict[str, Any]:
    """What is stored: the body, with our fields in front of it."""
    public = document.get("public")
    # Whatever else it was, "True" for one, made it private.
    shown = public if definition.public or public is False else "false"
    rest = {key: value for key, value in document.items() if key not in OURS}
    return {"id": definition.id, "public": shown, "createdAt": now, "updatedAt": now, **rest}


def _sources(
    definition: Definition, caller: int, services: Services
) -> tuple[tuple[str, StreamRef], ...]:
    """The streams that the groups subscribe to: existing ones, own or public."""
    wanted = tuple(
        (group.name, StreamRef(member, group.stream))
        for group in definition.groups
        for member in group.service_objects
    )
    if not wanted:
        return ()
    sources = services.catalog.sources({ref.service_object for _, ref in wanted})
    streams = {id_: frozenset(each.streams) for id_, each in sources.items()}
    for _, (id_, name) in wanted:
        if id_ not in sources:
            raise Refused(f"The Service Object: {id_} does not exist.")
        if sources[id_].tenant != caller and not sources[id_].public:
            raise NotAuthorized
        if name not in streams[id_]:
            raise NotFound(f"The Service Object: {id_} does not have the stream: {name}")
    return wanted
