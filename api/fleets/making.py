"""From a template and values to Service Objects, whose documents are understood by content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from api.documents.actions import check_targets
from api.documents.listing import with_listed
from api.documents.membership import with_who_belongs
from api.documents.operators import check_operators
from api.documents.service_objects import (
    CUSTOM,
    custom_fields,
    group_sources,
    members,
    parse_and_check,
    to_stored,
)
from api.services import Services
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.parameters import complete
from servioticy.domain.documents.stored import as_another, digest_of
from servioticy.domain.documents.templates import TEMPLATE, Template
from servioticy.domain.model import Definition, ServiceObjectKey
from servioticy.ports.change_store import MadeFrom, NewServiceObject

NOBODY = ""
"""The id of a document that is understood for many: no Service Object has it."""
MAX_KEPT = 16


@dataclass(frozen=True, slots=True)
class Follower:
    """A Service Object that follows a template, as it is now."""

    id: str
    template_version: int
    parameters: dict[str, Any]
    version: int
    revision: int
    document: bytes
    custom_fields: bytes | None
    created_at: int


@dataclass(frozen=True, slots=True)
class VersionOfTemplate:
    """A template as it was or is, understood."""

    id: str
    number: int
    template: Template


@dataclass(slots=True)
class Maker:
    """Makes Service Objects; documents that differ in no code and no stream are read once."""

    services: Services
    _known: dict[bytes, Definition | BadDocument] = field(default_factory=dict)

    def created(
        self, key: ServiceObjectKey, version: VersionOfTemplate, parameters: dict[str, Any]
    ) -> NewServiceObject:
        """Return the Service Object with these values. Raises BadDocument, NotAuthorized."""
        now = self.services.now()
        values = complete(version.template.parameters, parameters)
        document = _of(version, values, parameters)
        fields = custom_fields(document)
        return self._new(key, document, version, parameters, now, now, fields)

    def changed(
        self,
        tenant: int,
        follower: Follower,
        version: VersionOfTemplate,
        before: VersionOfTemplate,
    ) -> NewServiceObject:
        """Return the follower as this version of its template says, which `before` did.

        Values of parameters that there are no more are left out, of new ones it has the defaults.
        """
        declared = version.template.parameters
        parameters = {k: v for k, v in follower.parameters.items() if k in declared}
        document = _of(version, complete(declared, parameters), parameters)
        earlier = before.template.filled(complete(before.template.parameters, follower.parameters))
        fields = _merged(follower.custom_fields, earlier.get(CUSTOM), document.get(CUSTOM))
        key, now = ServiceObjectKey(tenant, follower.id), self.services.now()
        return self._new(
            key, document, version, parameters, follower.created_at, now, fields, follower
        )

    def _new(
        self,
        key: ServiceObjectKey,
        document: dict[str, Any],
        version: VersionOfTemplate,
        parameters: dict[str, Any],
        created_at: int,
        now: int,
        fields: bytes | None,
        follower: Follower | None = None,
    ) -> NewServiceObject:
        document = with_who_belongs(document, key, self.services)
        definition = self._understood(document, key)
        check_targets(document, key, self.services)
        before = follower.version if follower else None
        owners = check_operators(definition, key, self.services, before)
        known = self._members(follower) if follower and definition.groups else ()
        new = NewServiceObject(
            id=key.id,
            tenant=key.tenant,
            public=definition.public,
            document=to_stored(document, key.id, created_at, now),
            streams=tuple(each.ref.stream for each in definition.streams),
            group_sources=group_sources(definition, key.tenant, self.services, known),
            created_at=now,
            custom_fields=fields,
            made_from=MadeFrom(version.id, version.number, orjson.dumps(parameters)),
            operator_owners=owners,
        )
        return with_listed(new, self.services)

    def _members(self, follower: Follower) -> set[Any]:
        definitions = self.services.definitions
        return members(definitions.of(follower.id, follower.version, follower.document))

    def _understood(self, document: dict[str, Any], of: ServiceObjectKey) -> Definition:
        key = digest_of(document)
        found = self._known.get(key)
        if found is None:
            try:
                nobody = ServiceObjectKey(of.tenant, NOBODY)
                found = parse_and_check(document, nobody, self.services)
            except BadDocument as error:
                found = error
            if len(self._known) >= MAX_KEPT:
                del self._known[next(iter(self._known))]
            self._known[key] = found
        if isinstance(found, BadDocument):
            raise found
        return as_another(found, of.id)


def _of(
    version: VersionOfTemplate, values: Mapping[str, Any], parameters: Mapping[str, Any]
) -> dict[str, Any]:
    named = {"id": version.id, "version": version.number, "parameters": dict(parameters)}
    return {**version.template.filled(values), TEMPLATE: named}


def _merged(now: bytes | None, before: Any, after: Any) -> bytes | None:
    """Return the customFields where the template's have become others.

    They belong to the Service Object: what the template does not change stays as it is.
    """
    if before == after:
        return now
    fields = None if now is None else orjson.loads(now)
    if not all(isinstance(each, dict) for each in (fields or {}, before or {}, after or {})):
        return None if after is None else orjson.dumps(after)
    before, after, merged = before or {}, after or {}, dict(fields or {})
    for name in {**before, **after}:
        if name not in after:
            merged.pop(name, None)
        elif name not in before or before[name] != after[name]:
            merged[name] = after[name]
    return orjson.dumps(merged)
