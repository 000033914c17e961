"""What a batch is outside: rows of updates, states and verdicts, and records for subscribers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import orjson

from pipeline.stages.fetch import used_inputs
from pipeline.state.batch import BatchState
from pipeline.state.partition import Partition
from pipeline.steps import NewUpdate, Verdict
from servioticy.domain.emissions import Emission, Head, head, placed
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.domain.verdicts import STALE
from servioticy.ports.partition_store import StoredState, StoredUpdate, StoredVerdict

MAX_INPUTS_BYTES = 2048
"""Of the inputs that a stored verdict tells: a composite may have a thousand."""


def updates(
    new: Iterable[NewUpdate], partition: Partition, repeating: Collection[StreamRef] = ()
) -> list[StoredUpdate]:
    """The history of new updates, which come in the serial order.

    Only streams that are `repeating` may have updates of these timestamps already.
    """
    known: dict[StreamRef, tuple[int, int, int, bool]] = {}
    stored = []
    tree: int | None = None
    position = 0
    for (offset, _depth, _path), (origin, timestamp, document), _uses in new:
        row = known.get(origin)
        if row is None:
            owner, stream_id = partition.row_of(origin)
            row = known[origin] = owner.tenant, stream_id, owner.version, origin not in repeating
        tree, position = (tree, position + 1) if offset == tree else (offset, 0)
        tenant, number, version, is_new = row
        stored.append(
            StoredUpdate(tenant, number, timestamp, document, version, offset, position, is_new)
        )
    return stored


def emissions(new: Iterable[NewUpdate], partition: Partition) -> list[Emission]:
    """What subscribers are sent of new updates."""
    heads: dict[StreamRef, Head] = {}
    made = []
    for (offset, depth, path), (origin, timestamp, document), _uses in new:
        begin = heads.get(origin)
        if begin is None:
            owner, _stream_id = partition.row_of(origin)
            begin = heads[origin] = head(origin, owner.tenant, owner.version)
        made.append(placed(begin, timestamp, document, offset, depth, path))
    return made


def states(changed: Mapping[StreamRef, LastUpdate], partition: Partition) -> list[StoredState]:
    """What streams whose last update a batch changed keep, in order of stream."""
    rows = []
    for ref, last in changed.items():
        if last.state is not None:
            owner, stream_id = partition.row_of(ref)
            rows.append(StoredState(owner.tenant, stream_id, last.state))
    return sorted(rows)


def verdicts(state: BatchState, partition: Partition) -> list[StoredVerdict]:
    """How often each composite's computations ended how, and the last one of each kind."""
    rows = []
    for ending in state.endings:
        verdict = ending.last
        owner, stream_id = partition.row_of(verdict.composite)
        about = {
            "trigger": str(verdict.trigger.origin),
            "timestamp": verdict.trigger.timestamp,
            "version": owner.version,
            "message": _message(verdict, state, partition),
            "inputs": _inputs(verdict, state, partition),
        }
        text = orjson.dumps(about)
        rows.append(StoredVerdict(owner.tenant, stream_id, verdict.kind, ending.times, text))
    return sorted(rows, key=lambda each: (each.stream_id, each.verdict))


def _message(verdict: Verdict, state: BatchState, partition: Partition) -> str:
    """Why it ended so. What is stale may be found so in two places, which must read alike."""
    if verdict.kind != STALE:
        return verdict.message
    origin, timestamp, _document = verdict.trigger
    last = state.last_at(verdict.composite, verdict.place)
    if partition.graph.composite(verdict.composite)[2].options.staleness == "input":
        used = used_inputs(last).get(str(origin))
        return f"trigger {timestamp} is not newer than {used}, last used of this input"
    return f"trigger {timestamp} is not newer than output {last and last.timestamp}"


def _inputs(verdict: Verdict, state: BatchState, partition: Partition) -> dict[str, int | None]:
    """The timestamp of each input that the computation had, by the input's name.

    Only now is it known which own output came before it: the sandbox threads it through.
    """
    if not verdict.inputs:
        return {}
    composite = partition.graph.composite(verdict.composite)[2]
    names = [each.name for each in composite.inputs]
    inputs = dict(zip(names, verdict.inputs, strict=True))
    if composite.own is not None:
        last = state.last_at(verdict.composite, verdict.place)
        inputs[names[composite.own]] = last and last.timestamp
    return _short(inputs)


def _short(inputs: dict[str, int | None]) -> dict[str, int | None]:
    """The first of them, as many as there is room for; how many more under `...`."""
    room = MAX_INPUTS_BYTES
    for number, name in enumerate(inputs):
        room -= 24 + len(name.encode())
        if room < 0:
            some: dict[str, int | None] = dict(list(inputs.items())[:number])
            return some | {"...": len(inputs) - number}
    return inputs
