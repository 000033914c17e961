"""What became of one update: its tree, how each branch went on, and why it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flask import Blueprint, Response

from api.documents import absent
from api.documents.around import MAX_RELATED, understood
from api.documents.traced import Made, TracedStore
from api.documents.tracing import NOTED, OPEN, Step, Tracing
from api.http import authentication
from api.http.answers import answer
from api.http.authentication import needs
from api.http.queries import moment
from api.platform.traces import Traces
from api.resources.status import FOR_NOTHING
from api.services import Services
from servioticy.domain.access import Right, readable, seen_by
from servioticy.domain.graph import Graph
from servioticy.domain.model import ServiceObject, StreamRef, Timestamp
from servioticy.domain.records import UpdateRecord
from servioticy.domain.traces import id_of
from servioticy.domain.windowed import as_one
from servioticy.errors import Unavailable
from servioticy.ports.log import ReadableLog
from servioticy.refusals import NotFound

NEWEST = -1
SKEW_MS = 60_000
"""The clocks of the API and of Postgres may be apart by so much."""
MOST_HINTS = 20
"""Each asks the store which of its inputs are gone."""

Hint = Callable[[Step], str]


def blueprint(services: Services) -> Blueprint:
    """`/{service_object}/streams/{stream}/trace`."""
    routes = Blueprint("traces", __name__)
    last_updates = services.ports.statements("last_updates")
    traces = services.ports.statements("traces")
    own = Traces(services.settings)

    @routes.get("/<service_object>/streams/<stream>/trace")
    @needs(Right.INSPECT)
    def trace(service_object: str, stream: str) -> Response:
        """Answer with the tree of the update with this timestamp, or of the newest one."""
        address, key = authentication.stream()
        origin = StreamRef(service_object, stream)
        at = moment("timestamp", NEWEST)
        headers = services.reads.wait(address)
        if at == NEWEST:
            at = services.ports.history.newest(key) or 0
        store = TracedStore(
            address.caller,
            lambda each: address.scope.reaches(*each, Right.INSPECT),
            last_updates,
            traces,
        )
        made = store.made([(origin, at)]).get((origin, at))
        if made is None:
            raise NotFound("The stream has no update with this timestamp.")
        below = services.ports.graph.related([service_object], upstream=False, most=MAX_RELATED)
        found, complete = understood(below, services)
        known = readable(found)
        graph = Graph(map(as_one, known))
        accepted = _accepted(address.caller, origin, at, made, services.ports.log)
        since = accepted.get("acceptedAt", 0)
        tracing = Tracing((origin, at), graph, store, seen_by(address.caller, known))
        hint = _hints(known, address.caller, services)
        told = {
            "stream": str(origin),
            "lastUpdate": at,
            **_update(made, since),
            **accepted,
            "steps": [_step(each, hint, since) for each in tracing.steps],
            "hidden": len(tracing.hidden),
        }
        more: dict[str, Any] = {} if complete and tracing.complete else {"complete": False}
        measured = own.own(address.caller, accepted["trace"]) if "trace" in accepted else []
        if measured:
            more["measured"] = measured
        return answer(told | more, 200, headers)

    return routes


def _update(made: Made, since: int) -> dict[str, Any]:
    """Return what is told of a stored update: what it says, or how long it is, and since when.

    Nothing of it is stored before `since`: Postgres then tells of another transaction, whose
    number has come round.
    """
    told: dict[str, Any] = {"version": made.version}
    told |= {"bytes": made.size} if made.channels is None else {"channels": made.channels}
    if made.stored_at is None or made.stored_at < since - SKEW_MS:
        return told
    return {**told, "storedAt": made.stored_at}


def _accepted(
    caller: int, update: StreamRef, at: Timestamp, made: Made, log: ReadableLog
) -> dict[str, Any]:
    """Return when an update was accepted, and its trace; nothing where the log has it no more.

    So it is of what was computed, too: the record at its place is another update's.
    """
    try:
        record = log.record(caller, made.partition, made.offset)
    except Unavailable:
        return {}
    if not isinstance(record, UpdateRecord) or (record.origin, record.timestamp) != (update, at):
        return {}
    told: dict[str, Any] = {"acceptedAt": record.at} if record.at else {}
    return {**told, "trace": id_of(record.trace)} if record.trace else told


def _step(step: Step, hint: Hint, since: int) -> dict[str, Any]:
    told: dict[str, Any] = {
        "stream": str(step.stream),
        "triggeredBy": str(step.source),
        "as": step.name,
        "depth": step.depth,
        "verdict": step.verdict,
        "known": step.known,
    }
    if step.borders:
        told["borders"] = step.borders
    if step.output is not None:
        told["lastUpdate"] = step.output
    if step.made is not None:
        told |= _update(step.made, since)
    if step.known == NOTED and step.noted is not None:
        last = step.noted.last
        told |= {name: last[name] for name in ("version", "message") if last.get(name)}
        if said := hint(step):
            told["hint"] = said
    if step.inputs:
        told["inputs"] = list(_inputs(step))
    if step.left_out:
        told["moreInputs"] = step.left_out
    if step.known == OPEN and step.may_be:
        told["mayBe"] = list(step.may_be)
    return told


def _inputs(step: Step) -> Iterator[dict[str, Any]]:
    """Yield each input, and how much older it was than what woke the composite."""
    for each in step.inputs:
        told: dict[str, Any] = {"as": each.name, "lastUpdate": each.timestamp}
        if each.stream is not None:
            told["stream"] = str(each.stream)
        if each.timestamp is not None:
            told["age"] = step.at - each.timestamp
        yield told


def _hints(known: Sequence[ServiceObject], tenant: int, services: Services) -> Hint:
    """Return what tells why an input was null, by the documents in force; of the first few."""
    documents = {each.id: each for each in known}
    left = MOST_HINTS

    def hint(step: Step) -> str:
        nonlocal left
        document = documents[step.stream.service_object]
        declared = document.definition.stream(step.stream.stream)
        last = step.noted.last if step.noted is not None else {}
        inputs = last.get("inputs") or {}
        if (
            step.verdict not in FOR_NOTHING
            or declared is None
            or None not in inputs.values()
            or last.get("version") != document.version
            or left <= 0
        ):
            return ""
        left -= 1
        return absent.told(inputs, declared, tenant, services)

    return hint
