"""From a body to what is stored of a Service Object, and from that to what is answered."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson

from api.documents.actions import problems_with_conditions
from api.services import Services
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import UNKNOWN_SERVICE_OBJECT, UNKNOWN_STREAM
from servioticy.domain.documents.conditions import without_members
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.documents.service_objects import is_public
from servioticy.domain.documents.spelling import check_document
from servioticy.domain.model import Definition, ServiceObjectKey, StreamRef
from servioticy.domain.retention import check_retention
from servioticy.ports.service_objects import CurrentVersion
from servioticy.refusals import NotAuthorized, NotFound

OURS = ("id", "userId", "public", "createdAt", "updatedAt")
"""Fields that the platform writes; a body that has them does not override them."""
CUSTOM = "customFields"


def parse_and_check(
    document: dict[str, Any], key: ServiceObjectKey, services: Services
) -> Definition:
    """Return the document, understood, its snippets looked at. Raises BadDocument.

    What is wrong with several snippets is told together, each with its place.
    """
    check_document(document)
    definition = services.definitions.parsed(document, key.id)
    check_retention(document)
    problems = services.check(key.tenant, definition)
    problems += problems_with_conditions(document, key, services)
    if problems:
        reasons = "; ".join(each.reason for each in problems)
        first = problems[0]
        raise BadDocument(reasons, first.pointer, first.code, tuple(problems))
    return definition


def to_stored(document: dict[str, Any], service_object: str, created_at: int, now: int) -> bytes:
    """Return what is stored of each version: the body, with our fields in front of it.

    Without customFields, which are no version's: whoever computes would read them for nothing.
    """
    public = document.get("public")
    # Whatever else it was, "True" for one, made it private.
    public = public if is_public(document) or public is False else "false"
    rest = {key: value for key, value in document.items() if key not in (*OURS, CUSTOM)}
    ours = {"id": service_object, "public": public, "createdAt": created_at, "updatedAt": now}
    return orjson.dumps({**ours, **rest})


def custom_fields(document: dict[str, Any]) -> bytes | None:
    """Return the customFields of a body: they belong to the object and to no version."""
    return orjson.dumps(document[CUSTOM]) if CUSTOM in document else None


def current(key: ServiceObjectKey, services: Services) -> CurrentVersion:
    """Return the Service Object as it is now. Raises NotFound."""
    found = services.ports.service_objects.current(key)
    if found is None:
        raise NotFound("The Service Object was not found.")
    return found


def to_public(found: CurrentVersion) -> dict[str, Any]:
    """Return the document in force, with what belongs to none of its versions."""
    document = without_members(orjson.loads(found.document))
    document["updatedAt"] = found.updated_at
    if found.custom_fields is None:
        document.pop(CUSTOM, None)
    else:
        document[CUSTOM] = orjson.loads(found.custom_fields)
    return document


def etag(version: int, revision: int) -> str:
    """Return which version is in force, and how often the object has changed in any way."""
    return f'"{version}-{revision}"'


def group_sources(
    definition: Definition,
    caller: int,
    services: Services,
    known: Collection[StreamRef] = (),
) -> tuple[tuple[str, StreamRef], ...]:
    """Return the streams that the groups of the caller's document read: existing ones, own or
    granted ones.

    Those of `known` were so when they were first named. They may have gone since: devices
    do, and the others of their groups run on. Raises BadDocument where one does not exist,
    NotAuthorized where it is another tenant's and not granted.
    """
    wanted = tuple(
        (group.name, StreamRef(member, group.stream))
        for group in definition.groups
        for member in group.service_objects
    )
    if not wanted:
        return ()
    found = services.ports.graph.nodes({ref.service_object for _, ref in wanted})
    streams = {id_: frozenset(each.streams) for id_, each in found.items()}
    for group, ref in wanted:
        id_, name = ref
        if ref in known:
            continue
        if id_ not in found:
            reason = f"The Service Object: {id_} does not exist."
            pointer = WHOLE.at("groups", group, "soIds").pointer
            raise BadDocument(reason, pointer, UNKNOWN_SERVICE_OBJECT)
        if not found[id_].granted.may_derive(caller, name):
            raise NotAuthorized
        if name not in streams[id_]:
            reason = f"The Service Object: {id_} does not have the stream: {name}"
            pointer = WHOLE.at("groups", group, "stream").pointer
            raise BadDocument(reason, pointer, UNKNOWN_STREAM)
    return tuple((group, ref) for group, ref in wanted if ref.service_object in found)


def members(definition: Definition) -> set[StreamRef]:
    """Return all streams that the groups name."""
    return {
        StreamRef(member, group.stream)
        for group in definition.groups
        for member in group.service_objects
    }
