"""Stage 4: store what came out, in one transaction with its progress, then emit it."""

from __future__ import annotations

import msgspec
import orjson

from pipeline.journal import Journal, Made, Verdict
from pipeline.partition import Partition
from servioticy.messaging.records import EmittedRecord
from servioticy.model import ServiceObject, StreamRef
from servioticy.ports import Batch, Output, StoredLast, StoredUpdate, StoredVerdict


def emit(journal: Journal, next_offset: int, partition: Partition, output: Output) -> None:
    """Store the batch up to this offset of the log and send it to subscribers.

    Raises Fenced where another worker has the partition: then nothing is stored.
    """
    made = journal.made
    partition.commit(
        lambda first_offset: Batch(
            partition.number,
            first_offset,
            next_offset,
            output.acknowledged,
            _updates(made, partition),
            _lasts(journal, partition),
            _verdicts(journal, partition),
            partition.taken,
        )
    )
    partition.remember(journal.lasts())
    output.emit(next_offset, [_emitted(each, partition) for each in made])


def _updates(made: list[Made], partition: Partition) -> list[StoredUpdate]:
    rows: dict[StreamRef, tuple[ServiceObject, int]] = {}
    stored = []
    tree, position = -1, 0
    for (offset, _depth, _path), update in made:
        owner, stream_id = rows.get(update.origin) or rows.setdefault(
            update.origin, partition.row_of(update.origin)
        )
        tree, position = (tree, position + 1) if offset == tree else (offset, 0)
        stored.append(
            StoredUpdate(
                owner.tenant,
                stream_id,
                update.timestamp,
                update.document,
                owner.version,
                offset,
                position,
            )
        )
    return stored


def _lasts(journal: Journal, partition: Partition) -> list[StoredLast]:
    rows = []
    for ref, last in journal.lasts().items():
        owner, stream_id = partition.row_of(ref)
        rows.append(
            StoredLast(
                owner.tenant,
                stream_id,
                last.timestamp,
                last.document,
                owner.version,
                None if last.uses is None else orjson.dumps(last.uses),
            )
        )
    return sorted(rows, key=lambda each: each.stream_id)


def _verdicts(journal: Journal, partition: Partition) -> list[StoredVerdict]:
    """How often each composite's computations ended how, and the last one of each kind."""
    rows = []
    for (composite, kind), (times, verdict) in journal.endings.items():
        owner, stream_id = partition.row_of(composite)
        about = {
            "trigger": str(verdict.trigger.origin),
            "timestamp": verdict.trigger.timestamp,
            "version": owner.version,
            "message": verdict.message,
            "inputs": _inputs(verdict, partition),
        }
        rows.append(StoredVerdict(owner.tenant, stream_id, kind, times, orjson.dumps(about)))
    return sorted(rows, key=lambda each: (each.stream_id, each.verdict))


def _inputs(verdict: Verdict, partition: Partition) -> dict[str, int | None]:
    """The timestamp of each input that the computation had, by the input's name."""
    if not verdict.inputs:
        return {}
    inputs = partition.graph.composite(verdict.composite)[2].inputs
    return {each.name: at for each, at in zip(inputs, verdict.inputs, strict=True)}


def _emitted(made: Made, partition: Partition) -> EmittedRecord:
    update = made.update
    owner, _stream_id = partition.row_of(update.origin)
    return EmittedRecord(
        update.origin.service_object,
        update.origin.stream,
        owner.tenant,
        owner.version,
        update.timestamp,
        msgspec.Raw(update.document),
    )
