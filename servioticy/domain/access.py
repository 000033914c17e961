"""Who may do what with which resource. This is the only place that decides it.

SQL that has to decide the same reads the view `readers`; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

from servioticy.domain.model import Composite, ServiceObject


class Right(Enum):
    """What somebody wants to do; each route of the API names one."""

    CREATE = "create"
    """Service Objects of one's own"""
    LIST = "list"
    """one's own Service Objects"""
    READ = "read"
    """the document in force, stored updates and execution trees"""
    SUBSCRIBE = "subscribe"
    """have a stream's updates sent to oneself"""
    SEND = "send"
    """updates of a stream, and how actuations go"""
    ACTUATE = "actuate"
    """ask for actions, and see how they go"""
    CHANGE = "change"
    """replace, delete, erase"""
    INSPECT = "inspect"
    """earlier versions and verdicts: they may tell what is private, or somebody else's"""
    ADMIN = "admin"
    """the tenant's tokens: who has this has all"""


OPEN_TO_ALL = frozenset({Right.READ, Right.SUBSCRIBE})
"""What every tenant may do with what is public."""


OF_OBJECT_TOKENS = frozenset({Right.READ, Right.SUBSCRIBE, Right.SEND, Right.ACTUATE})
"""What a token of one Service Object is good for: all that a device needs, and no change."""


class Resource(NamedTuple):
    """Something that belongs to tenants."""

    owners: tuple[int, ...]
    public: bool = False


def may(tenant: int, right: Right, resource: Resource) -> bool:
    """Tell whether a tenant has this right: an owner has all, others those open to all."""
    return tenant in resource.owners or (resource.public and right in OPEN_TO_ALL)


OF_TENANTS = frozenset({Right.CREATE, Right.LIST, Right.ADMIN})
"""What is not about any one Service Object."""


class Scope(NamedTuple):
    """What a token is for, of all that its tenant may do."""

    service_object: str | None = None
    """The only one that its holder may act on; None: all."""
    stream: str | None = None
    """The only stream of that; None: all."""
    rights: Collection[str] | None = None
    """Rights by their values; None: all, or of one Service Object what a device needs."""

    def reaches(self, service_object: str | None, stream: str | None, right: Right) -> bool:
        """Tell whether the token is for such a request at all, whatever its tenant may do."""
        if self.service_object is not None and self.service_object != service_object:
            return False
        if self.stream is not None and self.stream != stream:
            return False
        if self.rights is not None:
            return right.value in self.rights
        return self.service_object is None or right in OF_OBJECT_TOKENS


def as_resource(service_object: ServiceObject) -> Resource:
    """Return the Service Object as something that belongs to its tenant."""
    return Resource((service_object.tenant,), service_object.definition.public)


def visible_to(tenant: int, service_objects: Sequence[ServiceObject]) -> set[str]:
    """Return the ids of those that the tenant may read."""
    return {each.id for each in service_objects if may(tenant, Right.READ, as_resource(each))}


def readable(service_objects: Sequence[ServiceObject]) -> Sequence[ServiceObject]:
    """Return each without those members of its groups that it may not read.

    A Service Object may cease to be public at a place in the log: from there on groups of
    other tenants read nothing of it, and are not woken by it.
    """
    if len({each.tenant for each in service_objects}) < 2:
        return service_objects
    resources = {each.id: as_resource(each) for each in service_objects}
    return [_with_readable_members(each, resources) for each in service_objects]


def _with_readable_members(
    service_object: ServiceObject, resources: Mapping[str, Resource]
) -> ServiceObject:
    definition, tenant = service_object.definition, service_object.tenant
    hidden = {
        member
        for group in definition.groups
        for member in group.service_objects
        if member in resources and not may(tenant, Right.READ, resources[member])
    }
    if not hidden:
        return service_object
    streams = tuple(
        replace(each, composite=_reading(each.composite, hidden)) if each.composite else each
        for each in definition.streams
    )
    return replace(service_object, definition=replace(definition, streams=streams))


def _reading(composite: Composite, hidden: Collection[str]) -> Composite:
    inputs = tuple(
        replace(each, members=tuple(m for m in each.members if m.service_object not in hidden))
        for each in composite.inputs
    )
    return replace(composite, inputs=inputs)
