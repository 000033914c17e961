"""A task and programs that run: what is asked is answered once and in order, whoever dies."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import waiting
from log_oracle import value_of
from memory import MemoryPlatform
from new_service_objects import new_service_object
from operator_folders import SECONDS, node_of, write
from process_walks import below, runs
from python_evaluator import PythonEvaluator

from pipeline.batching.means import Means
from pipeline.engine import Engine
from pipeline.limits import Limits
from pipeline.state.manifests import AskedPrograms
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.evaluators.every import every
from servioticy.domain.records import UpdateRecord
from servioticy.ports.programs import Manifest, Program, Programs

MAIN = """
from servioticy_operator import serve


def count(event, state):
    state.put("count", state.get("count", 0) + 1)
    if event.value("v") == 13:
        raise ValueError("thirteen")
    return {"v": 1000 * state.get("count") + event.value("v")}


serve(count)
"""


class Known:
    """Knows the one program."""

    def manifests(self, programs: Sequence[Program]) -> Mapping[Program, Manifest]:
        return {each: Manifest("python", True, 5, 0.0, 10.0, 2**28, 32) for each in programs}


class Running:
    """The twins, and a task that asks."""

    def __init__(self) -> None:
        self.platform = MemoryPlatform()
        token = self.platform.tenants.create_tenant("t")
        self.tenant = self.platform.tenants.tenant_of(token) or 0
        channels = {"v": {"type": "number"}}
        document = {
            "streams": {
                "d0": {"channels": channels},
                "p0": {"channels": channels, "operator": {"name": "tried", "version": 1}},
            }
        }
        self.platform.changes.create(new_service_object(self.tenant, "so", document))

    def ask(self, programs: Programs) -> None:
        """Ask these from here on."""
        self.asked = AskedPrograms(programs, Known())
        self.begin()

    def append(self, number: int) -> None:
        body = {"channels": {"v": {"current-value": number}}, "lastUpdate": 100 + number}
        update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
        self.platform.log.append(0, UpdateRecord("so", "d0", 100 + number, update))

    def begin(self) -> None:
        """A new worker, which knows nothing of the one before."""
        self.platform.state.claims.clear()
        evaluators = every(PythonEvaluator(lambda _trigger, _documents: 1))
        engine = Engine(evaluators, 100, 10**6, Limits(100, 10_000))
        self.task = Task(
            0,
            self.platform.partition_store(argument_names),
            lambda: self.platform.output(0),
            engine,
            means=Means(programs=self.asked),
        )
        self.task.take(())

    def work(self) -> None:
        log, progress = self.platform.state.log[0], self.platform.state.progress[0]
        rows = [Row(at, log[at]) for at in range(progress.next_offset, len(log))]
        self.task.take(rows)

    def made(self) -> list[tuple[int, int]]:
        return [
            (each.timestamp, value_of(bytes(each.update)))
            for each in self.platform.state.emitted
            if each.stream == "p0"
        ]

    def works_until(self, count: int) -> None:
        def are_there() -> bool:
            self.work()
            return len(self.made()) >= count

        waiting.until(are_there, SECONDS)


def test_what_is_asked_is_answered_once_and_in_order(tmp_path: Path) -> None:
    """Its process is killed, and a worker begins anew that knows nothing of what was asked."""
    running = Running()
    folders = {Program(running.tenant, "tried", 1): write(tmp_path / "tried", MAIN)}
    sent: list[int] = []
    with node_of(folders, tmp_path) as node:
        running.ask(node)
        for total in (7, 20, 30):
            some = range(len(sent), total)
            for number in some:
                running.append(number)
            sent += some
            running.work()
            if total == 20:
                for pid in below(os.getpid()):
                    if runs(pid, b"main.py"):
                        os.kill(pid, signal.SIGKILL)
            if total == 30:
                running.begin()
            right = [each for each in sent if each != 13]
            running.works_until(len(right))

    state = running.platform.state
    verdicts = {kind: times for (_, kind), (times, _last) in state.verdicts.items()}
    expected = [(100 + n, 1000 * (at + 1) + n) for at, n in enumerate(right)]
    assert running.made() == expected, "the one that raised has counted nothing"
    assert verdicts == {"collected": 30, "emitted": 29, "error": 1}
    assert sum(running.asked.seconds.values()) > 0
