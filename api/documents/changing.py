"""A body that is to take the place of a document: understood, and checked as POST checks one."""

from __future__ import annotations

from typing import Any, NamedTuple

from api.documents.actions import check_targets
from api.documents.membership import with_who_belongs
from api.documents.operators import check_operators
from api.documents.service_objects import group_sources, members, parse_and_check
from api.services import Services
from servioticy.domain.model import Definition, ServiceObjectKey, StreamRef


class NewDocument(NamedTuple):
    """What is to be put in force."""

    body: dict[str, Any]
    """With who belongs to its groups."""
    definition: Definition
    group_sources: tuple[tuple[str, StreamRef], ...]
    """The streams that its groups read."""


def new_document(
    body: dict[str, Any], key: ServiceObjectKey, before: Definition, services: Services
) -> NewDocument:
    """Return it. Raises BadDocument, NotAuthorized.

    The members that groups of the document before it have may stay, whatever became of them.
    """
    body = with_who_belongs(body, key, services)
    definition = parse_and_check(body, key.id, services)
    check_targets(body, key, services)
    check_operators(definition, key.tenant, services)
    sources = group_sources(definition, key.tenant, services, members(before))
    return NewDocument(body, definition, sources)
