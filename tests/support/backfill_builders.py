"""Backfills over a real Postgres: an API, a pipeline that computes, and what is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
from api_builders import Caller, Served
from memory.output import MemoryOutput

from api.app import SERVICES
from api.backfills.filling import Filling
from api.backfills.jobs import BackfillJobs
from pipeline.engine import Engine
from pipeline.limits import NO_LIMITS
from pipeline.task import Task
from pipeline.work import Row
from servioticy.domain.evaluators.evaluator import Evaluator
from servioticy.storage.partition_store import PostgresPartitionStore

SIMPLE = {"channels": {"x": {"type": "number"}}}


def computing(code: str, *reads: str) -> dict[str, Any]:
    """A composite stream of one channel `x`."""
    function = f"function({', '.join(reads)}){{return {code}}}"
    return {"channels": {"x": {"type": "number", "current-value": function}}}


def document(**streams: Any) -> dict[str, Any]:
    """A document with a simple stream `a`, and these."""
    return {"version": "0.2.0", "streams": {"a": SIMPLE, **streams}}


class Filled:
    """A platform whose pipeline works when it is told to, and so do its jobs."""

    def __init__(self, served: Served, evaluator: Evaluator) -> None:
        self.served = served
        self.evaluator = evaluator
        self._platform = served.platform
        self._at = dict.fromkeys(range(self._platform.log.partitions()), 0)

    def compute(self, until: Callable[[], bool] = lambda: False) -> None:
        """Take all that stands in the log, and what is put off, as a task that is begun for it."""
        state = self._platform.state
        for partition in self._at:
            engine = Engine({"javascript": self.evaluator}, 1000, 1000, NO_LIMITS)
            store = self._platform.store
            task = Task(partition, store, lambda p=partition: MemoryOutput(state, p), engine)
            rows = [Row(offset, value) for offset, value in enumerate(state.log[partition])]
            task.take(rows[store.all_progress().get(partition, 0) :])
            while task.is_behind and not until():
                task.take(())
            store.end(partition)

    def jobs(self) -> BackfillJobs:
        """Return what works off jobs in this process, as new as after a death."""
        ports = self._platform.ports
        filling = Filling(ports.statements("backfills"), self.evaluator)
        return BackfillJobs(self.served.app.extensions[SERVICES], filling)

    def partition_store(self) -> PostgresPartitionStore:
        """Return what the pipeline asks."""
        return self._platform.store

    def work(self) -> None:
        """Work off all jobs, and let them take their place."""
        self.jobs().turn()
        self.compute()

    def emitted(self) -> int:
        """How many updates have gone to subscribers."""
        return len(self._platform.state.emitted)

    def history(self, service_object: str, stream: str) -> list[tuple[int, float]]:
        """What a stream has: timestamps and values, oldest first."""
        rows = self._platform.database.rows(
            'SELECT "timestamp", document::text'
            "  FROM updates JOIN streams ON stored_as = stream_id"
            " WHERE service_object = %(id)s AND name = %(name)s ORDER BY 1",
            {"id": service_object, "name": stream},
        )
        return [(at, orjson.loads(text)["channels"]["x"]["current-value"]) for at, text in rows]

    def beside(self) -> int:
        """How many rows are stored that nobody sees."""
        rows: int = self._platform.database.rows("SELECT count(*) FROM backfilled")[0][0]
        return rows


def sent(caller: Caller, service_object: str, *values: tuple[int, float]) -> None:
    """Send updates of stream `a`: timestamps and values."""
    for at, value in values:
        body = b'{"channels":{"x":{"current-value":%g}},"lastUpdate":%d}' % (value, at)
        assert caller.put(service_object, body).status_code == 202


def ordered(caller: Caller, service_object: str, stream: str, since: int, until: int) -> str:
    """Order a backfill; the id of its job."""
    path = f"/{service_object}/streams/{stream}/backfill"
    answer = caller.ask("POST", path, json={"from": since, "to": until})
    assert answer.status_code == 202, answer.text
    job: str = answer.get_json()["job"]
    return job


def job_of(caller: Caller, job: str) -> Any:
    """What is told of a job."""
    answer = caller.ask("GET", f"/jobs/{job}")
    assert answer.status_code == 200, answer.text
    return answer.get_json()


class Death(BaseException):
    """The worker dies here."""


DOUBLE = computing("iot.value(a) * 2", "a")
TRIPLE = computing("iot.value(a) * 3", "a")
PLUS_ONE = computing("iot.value(double) + 1", "double")
BASE = 1_000_000_020
"""A time in seconds at which a minute begins; NOW is later."""
WINDOWED: dict[str, Any] = {
    "minute": computing("a.mean('x')", "a") | {"window": {"type": "tumbling", "size": "1m"}},
    "folded": computing("state", "a")
    | {
        "window": {"type": "tumbling", "size": "2m"},
        "fold": "function(state, a) { return (state === null ? 0 : state) + iot.value(a) }",
    },
    "quiet": computing("a.silent ? 1 : 0", "a") | {"silent": "5m"},
    "above": computing("iot.value(minute) * 10 + iot.value(double)", "minute", "double"),
    "double": DOUBLE,
    "newest": computing("iot.value(a)", "a") | {"staleness": "input"},
}


def changed_to(caller: Caller, so: str, body: Any) -> None:
    answer = caller.ask("PUT", f"/{so}", json=body)
    assert answer.status_code == 200, answer.text
