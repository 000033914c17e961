"""Who belongs to the dynamic groups of a document, at this moment."""

from __future__ import annotations

from typing import Any

import orjson

from api.services import Services
from servioticy.domain.documents.conditions import (
    MAX_DYNAMIC_MEMBERS,
    GroupConditions,
    dynamic_groups,
    with_members,
)
from servioticy.domain.model import ServiceObjectKey


def with_who_belongs(
    document: dict[str, Any], reader: ServiceObjectKey, services: Services
) -> dict[str, Any]:
    """Return a tenant's document with the members of its dynamic groups. Raises BadDocument."""
    found = {
        name: who_belongs(conditions, reader, services)
        for name, conditions in dynamic_groups(document).items()
    }
    return with_members(document, found)


def who_belongs(
    conditions: GroupConditions, reader: ServiceObjectKey, services: Services
) -> list[str]:
    """Return whose streams the group of this reader reads, the oldest first."""
    single = [each[0] for each in conditions.fields if len(each) == 1]
    choices = [each for each in conditions.fields if len(each) != 1]
    rows = services.ports.statements("dynamic_groups").rows(
        "members",
        tenant=reader.tenant,
        reader=reader.id,
        stream=conditions.stream,
        others=conditions.others,
        fields=single,
        choices=orjson.dumps(choices).decode(),
        names=_list(conditions.names),
        templates=_list(conditions.templates),
        limit=MAX_DYNAMIC_MEMBERS,
    )
    return [id_ for (id_,) in rows]


def _list(choices: tuple[str, ...] | None) -> list[str] | None:
    return None if choices is None else list(choices)
