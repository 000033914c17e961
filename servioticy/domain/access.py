"""Who may do what with which resource. This is the only place that decides it.

SQL that has to decide the same reads the views `readers`, `stream_readers` and
`stream_derivers`; a test holds them together. What is public is granted to everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import NamedTuple

from servioticy.domain.model import Composite, Grant, Input, ServiceObject, Stream, StreamRef


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
    """the tenant's tokens and members: who has this has all"""


OF_GRANTS = frozenset({Right.READ, Right.SUBSCRIBE})
"""What a grant is good for, to whoever is not the owner; never to write."""


OF_OBJECT_TOKENS = frozenset({Right.READ, Right.SUBSCRIBE, Right.SEND, Right.ACTUATE})
"""What a token of one Service Object is good for: all that a device needs, and no change."""


class Resource(NamedTuple):
    """Something that belongs to tenants."""

    owners: tuple[int, ...]
    granted: bool = False
    """Whether who asks may read it, though it may be another's: it is public, or by a grant."""


def may(tenant: int, right: Right, resource: Resource) -> bool:
    """Tell whether a tenant has this right: an owner has all, others those of a grant."""
    return tenant in resource.owners or (resource.granted and right in OF_GRANTS)


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


class MemberRole(Enum):
    """What a member of a tenant may do of all that the tenant may."""

    VIEWER = "viewer"
    """look at everything"""
    OPERATOR = "operator"
    """and send updates, and ask for actions"""
    DEVELOPER = "developer"
    """and make, change and delete Service Objects"""
    ADMIN = "admin"
    """everything, tokens and members too"""


_LOOKING = {Right.LIST, Right.READ, Right.SUBSCRIBE, Right.INSPECT}
_OPERATING = _LOOKING | {Right.SEND, Right.ACTUATE}
OF_ROLES: Mapping[MemberRole, frozenset[Right]] = {
    MemberRole.VIEWER: frozenset(_LOOKING),
    MemberRole.OPERATOR: frozenset(_OPERATING),
    MemberRole.DEVELOPER: frozenset(_OPERATING | {Right.CREATE, Right.CHANGE}),
    MemberRole.ADMIN: frozenset(Right),
}
"""The rights of each role."""


def scope_of(role: MemberRole) -> Scope:
    """Return what members of this role are let in for; who may do all, as their tenant itself."""
    rights = OF_ROLES[role]
    return Scope() if rights == set(Right) else Scope(rights={each.value for each in rights})


PUBLIC = Grant("public", None)
"""What it is to be public: a grant to everybody, to read."""


class Granted(NamedTuple):
    """Whose a Service Object is, and what others are granted of it."""

    owner: int
    grants: Sequence[Grant]

    def may_derive(self, tenant: int, stream: str) -> bool:
        """Tell whether composites of the tenant may read this stream."""
        return self._is_open(tenant, stream, deriving=True)

    def may_read(self, tenant: int, stream: str) -> bool:
        """Tell whether the tenant may have the updates of this stream."""
        return self._is_open(tenant, stream, deriving=False)

    def _is_open(self, tenant: int, stream: str, *, deriving: bool) -> bool:
        return tenant == self.owner or any(
            each.grantee in (None, tenant)
            and each.stream in (None, stream)
            and (deriving or not each.derived_only)
            for each in self.grants
        )


def granted(owner: int, public: bool, grants: Sequence[Grant] = ()) -> Granted:
    """Return what others are granted where these are the grants."""
    return Granted(owner, (PUBLIC, *grants) if public else grants)


def granted_of(service_object: ServiceObject) -> Granted:
    """Return what others are granted of a Service Object."""
    public = service_object.definition.public
    return granted(service_object.tenant, public, service_object.grants)


def private(service_object: ServiceObject) -> ServiceObject:
    """Return it as it is where nobody else may read it."""
    definition = replace(service_object.definition, public=False)
    return replace(service_object, definition=definition, grants=())


def seen_by(tenant: int, service_objects: Sequence[ServiceObject]) -> Callable[[StreamRef], bool]:
    """Return what tells of a stream of these whether the tenant may read it."""
    known = {each.id: granted_of(each) for each in service_objects}

    def sees(ref: StreamRef) -> bool:
        found = known.get(ref.service_object)
        return found is not None and found.may_read(tenant, ref.stream)

    return sees


def readable(service_objects: Sequence[ServiceObject]) -> Sequence[ServiceObject]:
    """Return each without those members of its groups that it may not read.

    A Service Object may cease to be public at a place in the log, and a grant may end there:
    from there on groups of other tenants read nothing of it, and are not woken by it.
    """
    if len({each.tenant for each in service_objects}) < 2:
        return service_objects
    known = {each.id: granted_of(each) for each in service_objects}
    return [_with_readable_members(each, known) for each in service_objects]


def losing(
    before: ServiceObject, after: ServiceObject, readers: Sequence[ServiceObject]
) -> Iterator[tuple[ServiceObject, Stream]]:
    """Yield the composites of readers that may read less of a Service Object than before."""
    had, has = granted_of(before), granted_of(after)
    for reader in readers:
        for stream in reader.definition.streams:
            members = (m for each in _inputs(stream) for m in each.members)
            names = {each.stream for each in members if each.service_object == before.id}
            if any(
                had.may_derive(reader.tenant, name) and not has.may_derive(reader.tenant, name)
                for name in names
            ):
                yield reader, stream


def _inputs(stream: Stream) -> Sequence[Input]:
    return stream.composite.inputs if stream.composite else ()


def _with_readable_members(
    service_object: ServiceObject, known: Mapping[str, Granted]
) -> ServiceObject:
    definition, tenant = service_object.definition, service_object.tenant
    hidden = {
        StreamRef(member, group.stream)
        for group in definition.groups
        for member in group.service_objects
        if member in known and not known[member].may_derive(tenant, group.stream)
    }
    if not hidden:
        return service_object
    streams = tuple(
        replace(each, composite=_reading(each.composite, hidden)) if each.composite else each
        for each in definition.streams
    )
    return replace(service_object, definition=replace(definition, streams=streams))


def _reading(composite: Composite, hidden: Collection[StreamRef]) -> Composite:
    inputs = tuple(
        replace(each, members=tuple(m for m in each.members if m not in hidden))
        for each in composite.inputs
    )
    return replace(composite, inputs=inputs)
