"""Names for the steps of our own programs: where each stands, and where its sequence's id."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple


class Pointcut(NamedTuple):
    """A step with a name."""

    name: str
    function: str
    sequence: str = ""


STORE = "servioticy.storage.partition_store.PostgresPartitionStore.store"

POINTCUTS = (
    Pointcut("api.request", "api.edge.calls.Application.call"),
    Pointcut("pipeline.batch", "pipeline.task.Task.take"),
    Pointcut("pipeline.piece", "pipeline.process.process", "work.updates.0.offset"),
    Pointcut("pipeline.stages.dispatch", "pipeline.stages.dispatch.dispatch", "updates.0.offset"),
    Pointcut("pipeline.stages.fetch", "pipeline.stages.fetch.fetch", "updates.0.offset"),
    Pointcut(
        "pipeline.stages.transform", "pipeline.stages.transform.transform", "updates.0.offset"
    ),
    Pointcut("pipeline.stages.emit", "pipeline.stages.emit.emit", "work.updates.0.offset"),
    Pointcut("operator.call", "servioticy.domain.evaluators.operators.Operators.evaluate"),
    Pointcut("sandbox.frame", "sandbox.host.pool.SandboxPool.grow"),
    Pointcut("storage.store", STORE),
    Pointcut("delivery.fanout", "delivery.fanout.FanOut.publish"),
)
"""From the request to the fan-out."""


def named(pattern: str) -> list[Pointcut]:
    """Return the steps that a pattern names; without any, the pattern is one of functions."""
    parts = pattern.split(".")
    return [each for each in POINTCUTS if _fits(each.name.split("."), parts)]


def _fits(names: list[str], patterns: list[str]) -> bool:
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))
