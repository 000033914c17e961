"""Who is told that an input of theirs has ended: composites that may read less from here on.

A verdict each, in the transaction that ends it, and none for the updates that follow: how often
somebody's stream is updated is nobody's business who may not read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import orjson

from pipeline.state.partition import Partition
from pipeline.state.weights import weight
from servioticy.domain.borders import reading
from servioticy.domain.model import ServiceObject, StreamRef
from servioticy.domain.verdicts import REVOKED
from servioticy.ports.batches import StoredVerdict

MAX_READ_BYTES = 32 * 1024 * 1024
"""Of definitions that are not known and have to be loaded for it, estimated."""
MAX_TOLD = 1000
"""Composites that get a verdict: a row each."""


def verdicts(
    partition: Partition, ended: Mapping[str, Sequence[StreamRef]]
) -> list[StoredVerdict]:
    """Tell the composites that may read these streams until now, by reader."""
    return list(islice(_told(partition, ended), MAX_TOLD))


def _told(
    partition: Partition, ended: Mapping[str, Sequence[StreamRef]]
) -> Iterator[StoredVerdict]:
    for reader in _loaded(partition, ended):
        lost = ended[reader.id]
        for stream in reading(reader, lost):
            number = reader.stream_ids.get(stream.ref.stream)
            if number is not None:
                last = _last(reader, lost[0])
                yield StoredVerdict(reader.tenant, number, REVOKED, 1, last)


def _loaded(partition: Partition, readers: Iterable[str]) -> Iterator[ServiceObject]:
    """Those that are known, and as many of the others as there is room for."""
    unknown = []
    for each in readers:
        known = partition.known(each)
        if known is not None:
            yield known
        else:
            unknown.append(each)
    room = MAX_READ_BYTES
    for found in partition.store.service_objects(unknown) if unknown else ():
        yield found
        room -= weight(found)
        if room < 0:
            return


def _last(reader: ServiceObject, source: StreamRef) -> bytes:
    """What is told of it: there is no trigger, and so no timestamp of one."""
    id_ = source.service_object
    return orjson.dumps(
        {
            "trigger": id_,
            "timestamp": 0,
            "version": reader.version,
            "message": f"the streams of {id_} may not be read any more, or are gone",
            "inputs": {},
        }
    )
