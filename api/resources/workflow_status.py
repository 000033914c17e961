"""How a workflow stands: its queues, instances, what it has done, and what that costs."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint, Response

from api.http.answers import answer
from api.http.authentication import authenticated, needs
from api.http.queries import moment
from api.resources.workflows import found
from api.services import Services
from servioticy.domain.access import Right
from servioticy.domain.workflows.costs import Work, amounts
from servioticy.domain.workflows.model import LOOK, SINK, SOURCE
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.settings.outward import Usage

HOUR = 3_600_000
_COUNTS = ("atoms", "made", "failed", "dead")


def blueprint(services: Services) -> Blueprint:
    """`/workflows/{workflow}/status`."""
    routes = Blueprint("workflow_status", __name__)
    stored = services.ports.statements("workflows")
    prices = services.settings.usage

    @routes.get("/workflows/<workflow>/status")
    @needs(Right.LIST)
    def status(workflow: str) -> Response:
        """Tell it; counts of what was done are of whole hours, from `from` on, seconds late."""
        own, tenant, now = found(stored, workflow), authenticated().caller, services.now()
        since = moment("from", now - HOUR) // HOUR * HOUR
        values = {"id": workflow, "tenant": tenant}
        read = parse_workflow(orjson.loads(own.content))
        first = [SOURCE] if read.files is not None else []
        every = [*first, *[p.name for p in read.procedures], SINK]
        steps = {name: _nothing() for name in every}
        names = {own.version: read}

        def of(version: int, step: int) -> dict[str, Any]:
            if version not in names:
                content = found(stored, workflow, version).content
                names[version] = parse_workflow(orjson.loads(content))
            return steps.setdefault(names[version].name_of(step), _nothing())

        for version, step, atoms, size, oldest, attempts, held in stored.rows("queues", **values):
            if step == LOOK:
                continue
            told = of(version, step)
            told["waiting"] += atoms
            told["waitingBytes"] += size
            told["held"] += held or 0
            told["mostAttempts"] = max(told["mostAttempts"], attempts or 0)
            if oldest is not None:
                told["oldestSince"] = min(told["oldestSince"] or oldest, oldest)
        for version, step, count in stored.rows("dead_counts", **values):
            of(version, step)["deadLetters"] += count
        for version, step, count in stored.rows("instances", **values, now=now):
            of(version, step)["instances"] += count
        for name, *counts, processor_us, mebibyte_ms in stored.rows(
            "hours", **values, since=since
        ):
            work = Work(counts[0], counts[1], processor_us, mebibyte_ms)
            told = steps.setdefault(name, _nothing())
            told["done"] = {
                **dict(zip(_COUNTS, counts, strict=True)),
                **amounts(prices, work),
            }
        seconds = max(1.0, (now - since) / 1000)
        finished = steps[SINK]["done"]["atoms"]
        spent = sum(each["done"]["cost"] for each in steps.values())
        body: dict[str, Any] = {
            "id": workflow,
            "version": own.version,
            "since": since,
            "waiting": sum(each["waiting"] for each in steps.values()),
            "deadLetters": sum(each["deadLetters"] for each in steps.values()),
            "instances": sum(each["instances"] for each in steps.values()),
            "atomsPerSecond": finished / seconds,
            "cost": spent,
            "costPerMillionAtoms": 1e6 * spent / finished if finished else None,
            "steps": steps,
        }
        if read.files is not None:
            body["files"] = _files(stored.row("files", **values))
        return answer(body)

    return routes


def _files(row: Any) -> dict[str, Any]:
    """Return how the store of its files was when it was looked at last."""
    looked_at, trouble, is_full, known = row or (None, "", False, 0)
    return {"lookedAt": looked_at, "trouble": trouble, "known": known, "tooMany": is_full}


def _nothing() -> dict[str, Any]:
    return {
        "waiting": 0,
        "waitingBytes": 0,
        "oldestSince": None,
        "held": 0,
        "mostAttempts": 0,
        "deadLetters": 0,
        "instances": 0,
        "done": {**dict.fromkeys(_COUNTS, 0), **amounts(Usage(), Work())},
    }
