"""Whose streams a group may read: its owner's, and the public ones of others.

A Service Object may cease to be public at a place in the log: from there on groups of
other tenants read nothing of it, and are not woken by it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from servioticy.domain.model import Composite, ServiceObject


def readable(service_objects: Sequence[ServiceObject]) -> Sequence[ServiceObject]:
    """Each without those members of its groups that it may not read."""
    if len({each.tenant for each in service_objects}) < 2:
        return service_objects
    private = {each.id: each.tenant for each in service_objects if not each.definition.public}
    return [_without(each, private) for each in service_objects]


def _without(service_object: ServiceObject, private: Mapping[str, int]) -> ServiceObject:
    definition, tenant = service_object.definition, service_object.tenant
    hidden = {
        member
        for group in definition.groups
        for member in group.service_objects
        if private.get(member, tenant) != tenant
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
