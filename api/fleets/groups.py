"""Dynamic groups follow the Service Objects that come, change and go.

Whoever changes a Service Object marks its tenant, in the same transaction. The follower looks
anew at all groups that may be concerned, and where others belong now, it puts a new version
of the reading document in force: one change, however much has changed since it looked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import orjson

from api.documents.listing import with_listed
from api.documents.membership import who_belongs
from api.documents.service_objects import CUSTOM, group_sources, members
from api.services import Services
from servioticy.changes import Changed
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.codes import TOO_MUCH
from servioticy.domain.documents.conditions import (
    MEMBERS,
    WHERE,
    parse_conditions,
    with_members,
)
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.model import Definition, ServiceObjectKey
from servioticy.errors import Unavailable
from servioticy.ports.change_store import MadeFrom, NewServiceObject
from servioticy.ports.service_objects import CurrentVersion, VersionKey

AT_ONCE = 100
TURN_SECONDS = 1.0
"""Then other work has its turn: there may be thousands of groups."""
SHARE_SECONDS = 0.1
"""Of it for one tenant, before the next one has its turn; one group may take longer."""
PAUSE_SECONDS = 0.25
"""At least, between two looks: what changes meanwhile becomes one version."""
PAUSE_FACTOR = 3.0
"""Of the time that a look took: others want to change something, too."""
KEPT_VERSIONS = 20
"""Of those that the follower made of a Service Object, the newest ones."""

log = logging.getLogger("api.fleets")


class Groups:
    """Keeps dynamic groups in step. For one thread."""

    def __init__(
        self, services: Services, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._services = services
        self._monotonic = monotonic
        self._sql = services.ports.statements("dynamic_groups")
        self._next = 0.0

    def turn(self) -> bool:
        """Look at groups that may be concerned, some; False: none is, or it is too early."""
        begun = self._monotonic()
        if begun < self._next:
            return False
        self._sql.rows("spread")
        looks = 0
        while self._monotonic() < begun + TURN_SECONDS and self._look():
            looks += 1
        ended = self._monotonic()
        if looks:
            self._next = ended + max(PAUSE_SECONDS, PAUSE_FACTOR * (ended - begun))
        return looks > 0

    def _look(self) -> bool:
        """Look at some groups of the tenant whose turn it is; False: it is nobody's."""
        row = self._sql.row("next_look")
        if row is None:
            return False
        tenant, after = row
        until = self._monotonic() + SHARE_SECONDS
        rows = self._sql.rows("readers", tenant=tenant, after=after, limit=AT_ONCE)
        for number, (id_,) in enumerate(rows, start=1):
            self._bring_up_to_date(ServiceObjectKey(tenant, id_))
            if number == AT_ONCE or self._monotonic() >= until:
                self._sql.rows("looked", tenant=tenant, after=id_)
                return True
        self._sql.rows("looked_at_all", tenant=tenant)
        return True

    def _bring_up_to_date(self, key: ServiceObjectKey) -> None:
        """Put a version with the present members in force, where they are others.

        What has changed meanwhile is left as it is: its change marked the tenant anew.
        """
        found = self._services.ports.service_objects.current(key)
        if found is None:
            return
        try:
            document = self._document(key, found)
            if document is None:
                return
            new = self._new(key, found, document)
            version = self._services.ports.changes.replace(new, found.revision)
        except Changed:
            return
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001  other groups, of other tenants, go on
            facts = {"service_object": key.id, "reason": str(error)[:500]}
            log.error("membership_not_changed", extra=facts)
            return
        values = key._asdict() | {"version": version, "keep": KEPT_VERSIONS}
        self._sql.rows("automatic", **values)

    def _document(self, key: ServiceObjectKey, found: CurrentVersion) -> dict[str, Any] | None:
        """Return the document with the present members; None: they are the same."""
        document = orjson.loads(found.document)
        wanted = {}
        for name, content in document.get("groups", {}).items():
            if isinstance(content, dict) and WHERE in content:
                conditions = parse_conditions(content, WHOLE.at("groups", name))
                wanted[name] = who_belongs(conditions, key, self._services)
        if all(document["groups"][name].get(MEMBERS) == ids for name, ids in wanted.items()):
            return None
        return with_members(document, wanted)

    def _new(
        self, key: ServiceObjectKey, found: CurrentVersion, document: dict[str, Any]
    ) -> NewServiceObject:
        services = self._services
        document, definition = self._understood(key, document)
        now = services.now()
        known = members(services.definitions.of(key.id, found.version, found.document))
        new = NewServiceObject(
            id=key.id,
            tenant=key.tenant,
            public=definition.public,
            document=_stored(document, now),
            streams=tuple(each.ref.stream for each in definition.streams),
            group_sources=group_sources(definition, key.tenant, services, known),
            created_at=now,
            custom_fields=found.custom_fields,
            operator_owners=services.ports.service_objects.operator_owners(
                VersionKey(*key, found.version)
            ),
        )
        new = with_listed(new, services)
        row = self._sql.row("template_of", **key._asdict())
        return new if row is None else replace(new, made_from=_made_from(*row))

    def _understood(
        self, key: ServiceObjectKey, document: dict[str, Any]
    ) -> tuple[dict[str, Any], Definition]:
        """Return the document with as many members as a document may hold, and what it means."""
        while True:
            try:
                return document, self._services.definitions.parsed(document, key.id)
            except BadDocument as error:
                groups = document["groups"]
                ids = {n: g[MEMBERS] for n, g in groups.items() if WHERE in g and g[MEMBERS]}
                if error.code != TOO_MUCH or not ids:
                    raise
                document = with_members(document, {n: i[: len(i) // 2] for n, i in ids.items()})


def _stored(document: dict[str, Any], now: int) -> bytes:
    """Return what is stored of a version: without customFields, which older ones have."""
    rest = {name: value for name, value in document.items() if name != CUSTOM}
    return orjson.dumps({**rest, "updatedAt": now})


def _made_from(template: str, version: int, parameters: str) -> MadeFrom:
    return MadeFrom(template, version, parameters.encode())
