"""Who is told that an input of theirs has ended: composites that may read less from here on.

A verdict each, in the transaction that ends it, and none for the updates that follow: how often
somebody's stream is updated is nobody's business who may not read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import orjson

from pipeline.state.partition import Partition
from pipeline.state.weights import weight
from servioticy.domain.access import granted_of, losing
from servioticy.domain.model import ServiceObject
from servioticy.domain.verdicts import REVOKED
from servioticy.ports.partition_store import ComponentMember, StoredVerdict

MAX_READERS = 1000
"""Service Objects of others that are looked at: who makes more of one component is told of
these."""
MAX_READ_BYTES = 32 * 1024 * 1024
"""Of definitions that are not known and have to be loaded for it, estimated."""
MAX_TOLD = 1000
"""Composites that get a verdict: a row each."""


def verdicts(
    partition: Partition, before: ServiceObject, after: ServiceObject
) -> list[StoredVerdict]:
    """Tell the composites of others that may read less of a Service Object after a change."""
    if not granted_of(before).grants:
        return []
    members = partition.store.component(before.id)
    others = [each for each in members if _may_lose(each, before, partition.number)]
    readers = list(_loaded(partition, others[:MAX_READERS]))
    return [
        StoredVerdict(reader.tenant, reader.stream_ids[name], REVOKED, 1, _last(reader, before))
        for reader, stream in islice(losing(before, after, readers), MAX_TOLD)
        if (name := stream.ref.stream) in reader.stream_ids
    ]


def _may_lose(member: ComponentMember, source: ServiceObject, partition: int) -> bool:
    return (
        member.tenant != source.tenant
        and member.version is not None
        and member.owner_partition == partition
    )


def _loaded(partition: Partition, members: Iterable[ComponentMember]) -> Iterator[ServiceObject]:
    """Those that are known, and as many of the others as there is room for."""
    unknown = []
    for each in members:
        known = partition.known(each.id)
        if known is not None:
            yield known
        else:
            unknown.append(each.id)
    room = MAX_READ_BYTES
    for found in partition.store.service_objects(unknown) if unknown else ():
        yield found
        room -= weight(found)
        if room < 0:
            return


def _last(reader: ServiceObject, source: ServiceObject) -> bytes:
    """What is told of it: there is no trigger, and so no timestamp of one."""
    return orjson.dumps(
        {
            "trigger": source.id,
            "timestamp": 0,
            "version": reader.version,
            "message": f"the streams of {source.id} may not be read any more, or are gone",
            "inputs": {},
        }
    )
