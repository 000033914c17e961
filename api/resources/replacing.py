"""Changing and deleting Service Objects and what is stored of their streams."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson
from flask import Blueprint, Response, request

from api.documents import readers
from api.documents.changing import new_document
from api.documents.listing import with_listed
from api.documents.service_objects import (
    CUSTOM,
    OURS,
    current,
    custom_fields,
    etag,
    to_stored,
)
from api.documents.warming import warm_up
from api.documents.warnings import warnings
from api.http import authentication
from api.http.answers import answer, nothing
from api.http.authentication import needs
from api.http.bodies import json_object
from api.http.queries import choice
from api.http.warning_headers import warned
from api.services import Services
from servioticy.changes import Changed, StillRead
from servioticy.domain.access import Right
from servioticy.domain.documents.conditions import without_members
from servioticy.domain.documents.service_objects import is_public
from servioticy.domain.documents.templates import TEMPLATE
from servioticy.domain.model import Definition, ServiceObjectKey
from servioticy.domain.quotas import DOCUMENT_BYTES
from servioticy.ports.change_store import NewServiceObject
from servioticy.ports.service_objects import CurrentVersion
from servioticy.ports.stream_graph import GroupReader
from servioticy.refusals import Conflict, NotFound, Outdated, Refused, within

_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_TAGS = re.compile(rf"{_TAG.pattern}(?:[ \t]*,[ \t]*{_TAG.pattern})*")
ATTEMPTS = 20
NOT_COMPARED = ("id", "userId", "createdAt", "updatedAt", "data", CUSTOM)


def blueprint(services: Services) -> Blueprint:
    """`PUT` and `DELETE /{service_object}`, `DELETE /{service_object}/streams/{stream}`."""
    routes = Blueprint("replacing", __name__)

    @routes.put("/<service_object>")
    @needs(Right.CHANGE)
    def replace(**_names: str) -> Response:
        body, key = json_object(), authentication.service_object()
        return on_the_newest(key, services, lambda found: put(body, key, found, services))

    @routes.delete("/<service_object>")
    @needs(Right.CHANGE)
    def delete(**_names: str) -> Response:
        key = authentication.service_object()

        def deleted(found: CurrentVersion) -> Response:
            revision = found.revision if _if_match() else None
            told = readers.of_deletion(key, found, services)
            services.ports.changes.delete(key, revision, services.now())
            return nothing(warned(told))

        return on_the_newest(key, services, deleted)

    @routes.delete("/<service_object>/streams/<stream>")
    @needs(Right.CHANGE)
    def erase(stream: str, **_names: str) -> Response:
        authentication.stream()
        try:
            services.ports.changes.erase(authentication.service_object(), stream)
        except Changed as error:
            raise NotFound("The Service Object was not found.") from error
        return nothing()

    return routes


def on_the_newest(
    key: ServiceObjectKey, services: Services, change: Callable[[CurrentVersion], Response]
) -> Response:
    """Make a change to what is there now, again where somebody else was faster.

    A caller that names what it has seen (`If-Match`) is told instead: Outdated.
    """
    for _ in range(ATTEMPTS):
        found = current(key, services)
        expect(found)
        try:
            return change(found)
        except Changed:
            continue
    raise Conflict("The Service Object is being changed by others all the time; try again")


def put(
    body: dict[str, Any], key: ServiceObjectKey, found: CurrentVersion, services: Services
) -> Response:
    """Put a body in the place of what is there. Raises Changed where that is not `found`."""
    detaches(), warms()  # else they are only looked at where they matter
    if _only_customises(body, key.id, found):
        return _customised(body, key, found, services)
    return _replaced(body, key, found, services)


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
    """Return the tags of `If-Match`, quotes and all; empty where there is none.

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
    """Tell whether the original's rule holds: it applied customFields and nothing else.

    It is kept for bodies that hold nothing else, or differ in nothing else from what is
    stored. The order of streams counts: it is the order of computing.
    """
    if CUSTOM in body and all(key in (*OURS, CUSTOM) and key != "public" for key in body):
        return True
    stored = without_members(orjson.loads(found.document))
    whole = orjson.loads(to_stored(body, service_object, 0, 0))
    return _compared(whole) == _compared(stored)


def _compared(document: dict[str, Any]) -> dict[str, bytes]:
    content = document | {"public": is_public(document)}
    return {k: orjson.dumps(v) for k, v in content.items() if k not in NOT_COMPARED}


def _customised(
    body: dict[str, Any], key: ServiceObjectKey, found: CurrentVersion, services: Services
) -> Response:
    now, fields = services.now(), custom_fields(body)
    with services.quotas.adding(key.tenant, **{DOCUMENT_BYTES: len(fields or b"")}) as exceeded:
        within(exceeded)
        if not services.ports.service_objects.customise(key, found.revision, fields, now):
            raise Changed
    tag = {"ETag": etag(found.version, found.revision + 1)}
    return answer({"id": key.id, "updatedAt": now}, 200, tag)


def _replaced(
    body: dict[str, Any], key: ServiceObjectKey, found: CurrentVersion, services: Services
) -> Response:
    """Put a whole new document in force, which is checked as POST checks one."""
    expect_no_template(key, services)
    before = services.definitions.of(key.id, found.version, found.document)
    new, definition = understood(body, key, found, services)
    if warms():
        warm_up(definition, before, new.operator_owners, key, services)
    more = len(definition.streams) - len(before.streams)
    added = {"streams": more, DOCUMENT_BYTES: new.size}
    new = with_listed(new, services)
    with services.quotas.adding(key.tenant, **added) as exceeded:
        within(exceeded)
        return put_in_force(new, definition, found, services)


def understood(
    body: dict[str, Any], key: ServiceObjectKey, found: CurrentVersion, services: Services
) -> tuple[NewServiceObject, Definition]:
    """Return what a body makes of what is there, which follows no template then.

    Raises BadDocument, NotAuthorized.
    """
    body = {name: each for name, each in body.items() if name != TEMPLATE}
    body, definition, sources, owners = new_document(body, key, found, services)
    now = services.now()
    new = NewServiceObject(
        id=key.id,
        tenant=key.tenant,
        public=definition.public,
        document=to_stored(body, key.id, orjson.loads(found.document)["createdAt"], now),
        streams=tuple(each.ref.stream for each in definition.streams),
        group_sources=sources,
        created_at=now,
        custom_fields=custom_fields(body),
        operator_owners=owners,
    )
    return new, definition


def findings_of(
    new: NewServiceObject, definition: Definition, found: CurrentVersion, services: Services
) -> tuple[list[str], dict[str, Any]]:
    """Return whom it concerns that the document takes the place of `found`, and all warnings."""
    before = services.definitions.of(new.id, found.version, found.document)
    told = readers.of_change(before, definition, ServiceObjectKey(new.tenant, new.id), services)
    findings = warnings(definition, new.document, new.tenant, services)
    if told:
        findings = {"warnings": [*told, *findings.get("warnings", ())]}
    return told, findings


def detaches() -> bool:
    """Tell whether the request says that the template is to be followed no more."""
    return choice("detach", ("false", "true")) == "true"


def warms() -> bool:
    """Tell whether programs that the document names are to be ready before it is in force."""
    return choice("warm", ("true", "false")) == "true"


def expect_no_template(key: ServiceObjectKey, services: Services) -> bool:
    """Tell whether it follows a template, which ends with this change as `?detach=true` says.

    Raises Conflict where the request does not say so.
    """
    found = template_of(key, services)
    if found is not None and not detaches():
        raise Conflict(
            f"The Service Object follows the template {found}: change that one, or say "
            "?detach=true, and it follows none any more"
        )
    return found is not None


def template_of(key: ServiceObjectKey, services: Services) -> str | None:
    """Return the template that it follows, if it does."""
    statements = services.ports.statements("templates")
    found = statements.row("template_of", service_object=key.id, tenant=key.tenant)
    return None if found is None else str(found[0])


def put_in_force(
    new: NewServiceObject,
    definition: Definition,
    found: CurrentVersion,
    services: Services,
    version: int | None = None,
) -> Response:
    """Put the document in force, and answer with the number of its version.

    Raises Changed where the Service Object has changed since `found`, and Conflict where others
    read a stream that the document lacks.
    """
    told, findings = findings_of(new, definition, found, services)
    try:
        number = services.ports.changes.replace(new, found.revision, version)
    except StillRead as error:
        raise Conflict(who_reads(error.readers, new.tenant)) from error
    body = {"id": new.id, "updatedAt": new.created_at, "version": number} | findings
    return answer(body, 200, {"ETag": etag(number, found.revision + 1)} | warned(told))


def who_reads(readers: Sequence[GroupReader], caller: int) -> str:
    """Return which streams cannot go, and who reads them: the caller's, and how many others."""
    streams = sorted({each.stream for each in readers})
    own = dict.fromkeys(each.id for each in readers if each.tenant == caller)
    others = len({each.id for each in readers if each.tenant != caller})
    who = [*own, *([f"{others} of other tenants"] if others else [])]
    return (
        f"The streams {', '.join(streams)} cannot go: groups of these Service Objects "
        f"subscribe to them: {', '.join(who)}"
    )
