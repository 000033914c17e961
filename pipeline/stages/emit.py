"""Stage 4: store what came out, in one transaction with its progress, then emit it."""

from __future__ import annotations

import logging

import msgspec
import orjson

from pipeline.emission import send
from pipeline.journal import Journal, Made, Verdict
from pipeline.partition import Partition
from pipeline.work import Work
from servioticy.errors import Unavailable
from servioticy.messaging.records import EmittedRecord
from servioticy.model import StreamRef
from servioticy.ports import Batch, Output, StoredLast, StoredUpdate, StoredVerdict

log = logging.getLogger("servioticy.pipeline")

MAX_INPUTS_BYTES = 2048
"""Of the inputs that a stored verdict tells: a composite may have a thousand."""


def emit(journal: Journal, work: Work, partition: Partition, output: Output) -> None:
    """Store what follows from this stretch of the log and send it to subscribers.

    Raises Fenced where another worker has the partition: then nothing is stored.
    """
    made = journal.made
    emitted = [_emitted(each, partition) for each in made]
    if journal.repeats:
        # An earlier one of the same stream and timestamp may be on its way; stored over it,
        # this would take its place where it is emitted again from.
        output.flush()
    partition.commit(
        lambda first_offset: Batch(
            partition.number,
            first_offset,
            work.next_offset,
            output.acknowledged,
            _updates(made, partition),
            _lasts(journal, partition),
            _verdicts(journal, partition),
            {each.source: each.next_offset for each in work.forwarded},
            put_off=work.put_off,
            taken_up=[each.offset for each in work.late],
        )
    )
    partition.remember(journal.lasts())
    _send(work, emitted, partition, output)


def _send(work: Work, emitted: list[EmittedRecord], partition: Partition, output: Output) -> None:
    """Send what is stored. Raises Unavailable, whatever goes wrong: it must not be stored again,
    and is emitted from the store where the partition is begun anew."""
    try:
        send(output, work.next_offset, emitted)
        if work.late:
            # Their place in the log is behind: it cannot tell how far emission has come.
            output.flush()
            partition.emitted_late.extend(each.offset for each in work.late)
    except Unavailable:
        raise
    except Exception as error:
        log.exception("emission_failed")
        raise Unavailable(f"what is stored could not be emitted: {error}") from error


def _updates(made: list[Made], partition: Partition) -> list[StoredUpdate]:
    rows: dict[StreamRef, tuple[int, int, int]] = {}
    stored = []
    tree: int | None = None
    position = 0
    for (offset, _depth, _path), (origin, timestamp, document) in made:
        row = rows.get(origin)
        if row is None:
            owner, stream_id = partition.row_of(origin)
            row = rows[origin] = owner.tenant, stream_id, owner.version
        tree, position = (tree, position + 1) if offset == tree else (offset, 0)
        tenant, number, version = row
        stored.append(StoredUpdate(tenant, number, timestamp, document, version, offset, position))
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
            "message": _message(verdict, journal, partition),
            "inputs": _inputs(verdict, journal, partition),
        }
        rows.append(StoredVerdict(owner.tenant, stream_id, kind, times, orjson.dumps(about)))
    return sorted(rows, key=lambda each: (each.stream_id, each.verdict))


def _message(verdict: Verdict, journal: Journal, partition: Partition) -> str:
    """Why it ended so. What is stale may be found so in two places, which must read alike."""
    if verdict.kind != "stale":
        return verdict.message
    origin, timestamp, _document = verdict.trigger
    last = journal.last_at(verdict.composite, verdict.place)
    if partition.graph.composite(verdict.composite)[2].options.staleness == "input":
        used = ((last and last.uses) or {}).get(str(origin))
        return f"trigger {timestamp} is not newer than {used}, last used of this input"
    return f"trigger {timestamp} is not newer than output {last and last.timestamp}"


def _inputs(verdict: Verdict, journal: Journal, partition: Partition) -> dict[str, int | None]:
    """The timestamp of each input that the computation had, by the input's name.

    Only now is it known which own output came before it: the sandbox threads it through.
    """
    if not verdict.inputs:
        return {}
    composite = partition.graph.composite(verdict.composite)[2]
    names = [each.name for each in composite.inputs]
    inputs = dict(zip(names, verdict.inputs, strict=True))
    if composite.own is not None:
        last = journal.last_at(verdict.composite, verdict.place)
        inputs[names[composite.own]] = last and last.timestamp
    return _short(inputs)


def _short(inputs: dict[str, int | None]) -> dict[str, int | None]:
    """The first of them, as many as there is room for; how many more under `...`."""
    room = MAX_INPUTS_BYTES
    for number, name in enumerate(inputs):
        room -= 24 + len(name.encode())
        if room < 0:
            told: dict[str, int | None] = dict(list(inputs.items())[:number])
            return told | {"...": len(inputs) - number}
    return inputs


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
        (made.place.offset, made.place.depth, *made.place.path),
    )
