"""Names for the steps of our own programs: where each stands, and where its sequence's id."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple


class Pointcut(NamedTuple):
    """A step with a name."""

    name: str
    function: str
    sequence: str = ""
    """where the id of its sequence stands among its arguments"""
    traces: str = ""
    """where trace contexts stand, in the same argument; they come before the id"""


OF, TRACES = "updates.0.offset", "updates.*.trace"
OF_WORK, TRACES_OF_WORK = f"work.{OF}", f"work.{TRACES}"
WRITER = "servioticy.messaging.log_writer.LogWriter"
STORE = "servioticy.storage.partition_store.PostgresPartitionStore.store"

POINTCUTS = (
    Pointcut(
        "api.request",
        "api.edge.calls.Application.call",
        traces="request.head.headers.HTTP_TRACEPARENT",
    ),
    Pointcut("ingest.take", "ingest.ingest.Ingest.take", traces="sent.*.updates.*.trace"),
    Pointcut("ingest.take_one", "ingest.ingest.Ingest.take_one", traces="offered.trace"),
    Pointcut("ingest.take_batch", "ingest.ingest.Ingest.take_batch", traces="trace"),
    Pointcut("log.append", f"{WRITER}.append_all", traces="records.*.1.trace"),
    Pointcut("log.append", f"{WRITER}.append", traces="record.trace"),
    Pointcut("pipeline.batch", "pipeline.task.Task.take"),
    Pointcut("pipeline.piece", "pipeline.process.process", OF_WORK, TRACES_OF_WORK),
    Pointcut("pipeline.stages.dispatch", "pipeline.stages.dispatch.dispatch", OF, TRACES),
    Pointcut("pipeline.stages.fetch", "pipeline.stages.fetch.fetch", OF, TRACES),
    Pointcut("pipeline.stages.transform", "pipeline.stages.transform.transform", OF, TRACES),
    Pointcut("pipeline.stages.emit", "pipeline.stages.emit.emit", OF_WORK, TRACES_OF_WORK),
    Pointcut("pipeline.emission", "servioticy.messaging.emitter.Emitter.emit"),
    Pointcut(
        "program.question", "pipeline.state.asking.Asking._ask", traces="question.waits.traces.*"
    ),
    Pointcut("program.answer", "pipeline.state.answering.answer_of", traces="asked.traces.*"),
    Pointcut("operator.call", "servioticy.domain.evaluators.operators.Operators.evaluate"),
    Pointcut("sandbox.frame", "sandbox.host.pool.SandboxPool.grow"),
    Pointcut("storage.store", STORE),
    Pointcut("delivery.fanout", "delivery.fanout.FanOut.publish"),
    Pointcut("delivery.offer", "delivery.fanout.FanOut._give", traces="live.trace"),
    Pointcut("delivery.read", "delivery.feeds.feed.Feed.read", traces="live.trace"),
    Pointcut(
        "delivery.callback", "delivery.callbacks.receiver.Callbacks.attempt", traces="sent.trace"
    ),
)
"""From the request to the callback."""


def named(pattern: str) -> list[Pointcut]:
    """Return the steps that a pattern names; without any, the pattern is one of functions."""
    parts = pattern.split(".")
    return [each for each in POINTCUTS if _fits(each.name.split("."), parts)]


def _fits(names: list[str], patterns: list[str]) -> bool:
    return len(names) == len(patterns) and all(map(fnmatchcase, names, patterns))
