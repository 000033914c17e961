"""Changing and deleting Service Objects and what is stored of their streams."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson
from flask import Blueprint, Response, request

from api import authentication
from api.answers import answer, nothing
from api.bodies import json_object
from api.documents import (
    CUSTOM,
    OURS,
    checked,
    current,
    custom_fields,
    etag,
    kept,
    members,
    sources,
)
from api.errors import Conflict, NotFound, Outdated, Refused
from api.services import Services
from api.warnings import warnings
from servioticy import changes
from servioticy.changes import Changed, StillSubscribed
from servioticy.domain.documents.service_objects import is_public
from servioticy.domain.model import Definition
from servioticy.ports.catalog import CurrentVersion, NewServiceObject

_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_TAGS = re.compile(rf"{_TAG.pattern}(?:[ \t]*,[ \t]*{_TAG.pattern})*")
ATTEMPTS = 20
NOT_COMPARED = ("id", "userId", "createdAt", "updatedAt", "data", CUSTOM)


def blueprint(services: Services) -> Blueprint:
    """`PUT` and `DELETE /{service_object}`, `DELETE /{service_object}/streams/{stream}`."""
    routes = Blueprint("replacing", __name__)

    @routes.put("/<service_object>")
    def replace(service_object: str) -> Response:
        body = json_object()
        return _on_the_newest(
            service_object,
            services,
            lambda found: (
                _customised(body, service_object, found, services)
                if _only_customises(body, service_object, found)
                else _replaced(body, service_object, found, services)
            ),
        )

    @routes.delete("/<service_object>")
    def delete(service_object: str) -> Response:
        def deleted(found: CurrentVersion) -> Response:
            revision = found.revision if _if_match() else None
            changes.delete(
                service_object, revision, services.now(), services.catalog, services.log
            )
            return nothing()

        return _on_the_newest(service_object, services, deleted)

    @routes.delete("/<service_object>/streams/<stream>")
    def erase(service_object: str, stream: str) -> Response:
        authentication.stream()
        try:
            changes.erase(service_object, stream, services.catalog, services.log)
        except Changed as error:
            raise NotFound("The Service Object was not found.") from error
        return nothing()

    return routes


def _on_the_newest(
    service_object: str, services: Services, change: Callable[[CurrentVersion], Response]
) -> Response:
    """Make a change to what is there now, again where somebody else was faster.

    A caller that names what it has seen (`If-Match`) is told instead: Outdated.
    """
    for _ in range(ATTEMPTS):
        found = current(service_object, services)
        expect(found)
        try:
            return change(found)
        except Changed:
            continue
    raise Conflict("The Service Object is being changed by others all the time; try again")


def expect(found: CurrentVersion) -> None:
    """Raises Outdated where `If-Match` does not name what is there now, Refused for nonsense."""
    now = etag(found.version, found.revision)
    wanted = _if_match()
    if wanted and "*" not in wanted and now not in wanted:
        raise Outdated(
            f"The Service Object has changed: {now} is there now, and If-Match names "
            f"{request.headers['If-Match']:.100}",
            now,
        )


def _if_match() -> list[str]:
    """The tags of `If-Match`, quotes and all; empty where there is none.

    One that we cannot read is refused: it asked for care, so no change is made blindly.
    """
    value = request.headers.get("If-Match")
    if value is None:
        return []
    if value.strip() == "*":
        return ["*"]
    if _TAGS.fullmatch(value.strip()) is None:
        raise Refused(f'If-Match has to be "*" or tags in quotes, not {value:.100}')
    return _TAG.findall(value)


def _only_customises(body: dict[str, Any], service_object: str, found: CurrentVersion) -> bool:
    """The original's rule: it applied customFields and nothing else.

    It is kept for bodies that hold nothing else, or differ in nothing else from what is
    stored. The order of streams counts: it is the order of computing.
    """
    if CUSTOM in body and all(key in (*OURS, CUSTOM) and key != "public" for key in body):
        return True
    stored = orjson.loads(found.document)
    whole = orjson.loads(kept(body, service_object, 0, 0))
    return _compared(whole) == _compared(stored)


def _compared(document: dict[str, Any]) -> dict[str, bytes]:
    content = document | {"public": is_public(document)}
    return {k: orjson.dumps(v) for k, v in content.items() if k not in NOT_COMPARED}


def _customised(
    body: dict[str, Any], service_object: str, found: CurrentVersion, services: Services
) -> Response:
    now, fields = services.now(), custom_fields(body)
    if not services.catalog.customise(service_object, found.revision, fields, now):
        raise Changed
    tag = {"ETag": etag(found.version, found.revision + 1)}
    return answer({"id": service_object, "updatedAt": now}, 200, tag)


def _replaced(
    body: dict[str, Any], service_object: str, found: CurrentVersion, services: Services
) -> Response:
    """A whole new document, as POST takes it; what the one before had in groups may stay."""
    definition = checked(body, service_object, services)
    before = services.definitions.of(service_object, found.version, found.document)
    now = services.now()
    created_at = orjson.loads(found.document)["createdAt"]
    document = kept(body, service_object, created_at, now)
    new = NewServiceObject(
        id=service_object,
        tenant=authentication.asked().caller,
        public=definition.public,
        document=document,
        streams=tuple(each.ref.stream for each in definition.streams),
        group_sources=sources(
            definition, authentication.asked().caller, services, members(before)
        ),
        created_at=now,
        custom_fields=custom_fields(body),
    )
    return put_in_force(new, definition, found, services)


def put_in_force(
    new: NewServiceObject,
    definition: Definition,
    found: CurrentVersion,
    services: Services,
    version: int | None = None,
) -> Response:
    """Make it so, and answer with the version's number. Raises Changed and Conflict."""
    findings = warnings(definition, new.tenant, services)
    try:
        number = changes.replace(new, found.revision, services.catalog, services.log, version)
    except StillSubscribed as error:
        raise Conflict(_who(error, new.tenant)) from error
    body = {"id": new.id, "updatedAt": new.created_at, "version": number} | findings
    return answer(body, 200, {"ETag": etag(number, found.revision + 1)})


def _who(error: StillSubscribed, caller: int) -> str:
    """Which of the caller's own; others are a number."""
    streams = sorted({each.stream for each in error.subscribers})
    own = dict.fromkeys(each.id for each in error.subscribers if each.tenant == caller)
    others = len({each.id for each in error.subscribers if each.tenant != caller})
    who = [*own, *([f"{others} of other tenants"] if others else [])]
    return (
        f"The streams {', '.join(streams)} cannot go: groups of these Service Objects "
        f"subscribe to them: {', '.join(who)}"
    )
