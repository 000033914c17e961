"""A body that is to take the place of a document: understood, and checked as POST checks one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from api.documents.actions import check_targets
from api.documents.membership import with_who_belongs
from api.documents.operators import check_operators
from api.documents.service_objects import group_sources, members, parse_and_check
from api.services import Services
from servioticy.domain.model import Definition, ServiceObjectKey, StreamRef
from servioticy.ports.service_objects import CurrentVersion


class NewDocument(NamedTuple):
    """What is to be put in force."""

    body: dict[str, Any]
    """With who belongs to its groups."""
    definition: Definition
    group_sources: tuple[tuple[str, StreamRef], ...]
    """The streams that its groups read."""
    operator_owners: Mapping[str, int]
    """Whom it means by the names of others whose programs it names."""


def new_document(
    body: dict[str, Any], key: ServiceObjectKey, found: CurrentVersion, services: Services
) -> NewDocument:
    """Return what takes the place of `found`. Raises BadDocument, NotAuthorized.

    The members that groups of the document before it have may stay, whatever became of them.
    """
    before = services.definitions.of(key.id, found.version, found.document)
    body = with_who_belongs(body, key, services)
    definition = parse_and_check(body, key, services)
    check_targets(body, key, services)
    owners = check_operators(definition, key, services, found.version)
    sources = group_sources(definition, key.tenant, services, members(before))
    return NewDocument(body, definition, sources, owners)
