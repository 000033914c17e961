"""A trial of a changed document: what stands around it, of whoever asks."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from api.documents.around import MAX_RELATED, understood
from api.services import Services
from api.trials.trial import STREAMS_AROUND, Trial
from servioticy.domain.access import Right, Scope
from servioticy.domain.model import Definition, ServiceObject, ServiceObjectKey
from servioticy.ports.stream_graph import Relatives
from servioticy.refusals import Refused


class Tried(NamedTuple):
    """Both versions of a document, and how many of its last updates are wanted."""

    before: Definition
    after: Definition
    version: int
    last: int


def trial(tried: Tried, key: ServiceObjectKey, scope: Scope, services: Services) -> Trial:
    """Return it, with all of the tenant's that may be derived from it. Raises Refused.

    Both versions bear the number of the one in force: code that throws dice throws the same.
    """
    below = services.ports.graph.related([key.id], upstream=False, most=MAX_RELATED)
    own = [
        each
        for each in below.found
        if each.tenant == key.tenant
        and each.id != key.id
        and scope.reaches(each.id, None, Right.READ)
    ]
    sequence = next((each.sequence for each in below.found if each.id == key.id), 0)
    others, _complete = understood(Relatives(own, below.complete), services)
    itself = ServiceObject(tried.before, key.tenant, tried.version, sequence, {})
    changed = replace(itself, definition=tried.after)
    streams = sum(len(each.definition.streams) for each in (itself, changed, *others))
    if streams > STREAMS_AROUND:
        raise Refused(
            f"What may be derived from it has {streams} streams, and a trial looks at "
            f"{STREAMS_AROUND} at most"
        )
    return Trial(
        key.tenant,
        scope,
        key.id,
        [_sent(each) for each in (itself, *others)],
        [_sent(each) for each in (changed, *others)],
        tried.last,
        services.settings.limits.max_hops,
        services.now(),
    )


def _sent(service_object: ServiceObject) -> ServiceObject:
    """Return it as it can be sent to another process, without what is of no use there."""
    definition = replace(service_object.definition, like=None)
    return replace(
        service_object,
        definition=definition,
        grants=(),
        inputs={},
        read_in={},
        operator_owners={},
    )
