"""How many atoms a second workflows work on, how long one takes, and what a million costs.

The input-output test of SPSC (section IV): a source gives messages, one procedure takes them, and
they are written to the store; with 1 to 40 instances. The store is a Postgres of its own that
waits for the disk, the procedures run in the sandbox. Code there has nothing to wait for; where
work waits the sink does, for a receiver that takes 0.1 s over each atom (`--code call`).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, NoReturn

import orjson

from benchmarks import functions_called, functions_killed, ground, processes
from functions.accounts import Accounts
from functions.calling import Caller
from functions.dispatcher import Dispatcher
from functions.limits import Limits
from functions.scripts import Scripts
from functions.sinks import Sinks
from functions.steps import Result, Step, Task
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.outside_addresses import Rules
from servioticy.domain.workflows.costs import Work
from servioticy.domain.workflows.model import CALLBACK, Workflow
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.parts import connect, sandbox_pool
from servioticy.ports.atoms import Atom, Works
from servioticy.ports.usage import Spent
from servioticy.settings import Settings
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.database import Database
from servioticy.storage.roles import Role
from servioticy.storage.statements import PostgresStatements

PAPER = (
    "SPSC, 40 instances of AWS Lambda: $0.041 to $0.053 a million events without writing to the "
    "database, by interpolation 8,812 events/s at $1.028 an hour; Flink of Alibaba: $0.053"
)
PAPERS_HOUR = 1.028
"""Dollars: what an hour of it costs where it is compared."""
CALL, CALL_SECONDS, LOOPBACK = "call", 0.1, ("127.0.0.0/8",)
CODES = {
    "io": "function(atom) { return {n: atom.n, even: atom.n % 2 === 0}; }",
    "compute": "function(atom) { let n = 0; for (let i = 0; i < 100000; i++) n += i % 7;"
    " return {n: atom.n, sum: n}; }",
    CALL: "function(atom) { return {n: atom.n}; }",
}
PART = 1_000


class Seen(NamedTuple):
    """What a run has shown."""

    seconds: float
    latencies_ms: list[int]
    processor_seconds: float
    """Of scripts."""
    all_seconds: float
    """Of scripts, of what hands atoms to them, and of Postgres."""
    gibibyte_hours: float
    """Of memory that procedures may have, for as long as they work."""


class _Sink:
    """Notes when atoms come, and keeps them as results, or calls a receiver with them."""

    def __init__(self, calls: Step | None) -> None:
        self.latencies: list[int] = []
        self._calls = calls

    def work(self, task: Task, atoms: Sequence[Atom]) -> Result:
        if self._calls is None:
            found = Result({each.id: () for each in atoms}, collected=True)
        else:
            found = self._calls.work(task, atoms)
        now = int(time.time() * 1000)
        self.latencies += [now - each.entered_ms for each in atoms if each.id in found.done]
        return found


class _Counted:
    """Accounts that are kept here: microseconds of scripts."""

    def __init__(self) -> None:
        self.processor_us = self.mebibyte_ms = 0

    def note(self, works: Works) -> None:
        self.processor_us += sum(each.processor_us for each in works)
        self.mebibyte_ms += sum(each.mebibyte_ms for each in works)

    def spend(self, _spent: dict[Spent, int] | object) -> None:
        """Nobody pays."""

    def deliver(self, _counted: object) -> None:
        """Nobody is delivered to."""


def _no_log() -> NoReturn:
    raise AssertionError("atoms of this benchmark are no updates")


class NoQuotas:
    """Nobody is at rest, and nobody has too much."""

    def resting(self) -> Collection[int]:
        """Return nobody."""
        return ()

    def full(self, _held: Mapping[int, int]) -> Collection[int]:
        """Return nobody."""
        return ()

    def brimming(self, _atoms: Mapping[int, int]) -> Collection[int]:
        """Return nobody."""
        return ()

    def silent(self) -> Collection[int]:
        """Return nobody."""
        return ()


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print a line for each number of instances."""
    parser = argparse.ArgumentParser("servioticy bench functions")
    parser.add_argument("--atoms", type=int, default=5_000, help="of each run")
    parser.add_argument("--instances", default="1,2,4,8,16,40", help="how many, one run each")
    parser.add_argument("--code", choices=sorted(CODES), default="io", help="what is done")
    parser.add_argument("--price", type=float, default=0.04, help="of an hour of a processor")
    parser.add_argument(
        "--memory-price", type=float, default=0.0045, help="of an hour of 1,024 MiB of procedures"
    )
    parser.add_argument(
        "--kills",
        type=int,
        default=0,
        help="kill so many processes at random meanwhile, and count what comes to the sink",
    )
    parser.add_argument(
        "--sink",
        choices=sorted(functions_killed.SINKS),
        default="collect",
        help="where that is: results here, or a table without a key",
    )
    options = parser.parse_args(arguments)
    if options.kills:
        functions_killed.measure(settings, options.atoms, options.kills, options.sink)
        return
    print(
        f"load {os.getloadavg()[0]:.1f} at the start\n"
        f"{'instances':>9} {'atoms/s':>9} {'speed-up':>8} {'p50 ms':>8} {'p99 ms':>8}"
        f" {'scripts s':>9} {'all s':>9} {'$/M scripts':>11} {'$/M all':>9}"
        f" {'atoms/s at $1.028':>18}"
    )
    with ground.stores(settings) as stores, _document(options.code) as document:
        owner = Database(stores.settings.store.dsn)
        _prepare(owner, document)
        read = parse_workflow(document)
        first = 0.0
        for number in map(int, options.instances.split(",")):
            seen = _measured(stores, read, options.atoms, number)
            memory = seen.gibibyte_hours * options.memory_price
            scripts, all_ = (
                (each / 3600 * options.price + memory) / options.atoms * 1e6
                for each in (seen.processor_seconds, seen.all_seconds)
            )
            for_an_hour = PAPERS_HOUR / 3600 / all_ * 1e6
            each_second = options.atoms / seen.seconds
            first = first or each_second
            print(
                f"{number:>9} {each_second:>9.0f} {each_second / first:>8.2f}"
                f" {ground.percentile(seen.latencies_ms, 0.5):>8}"
                f" {ground.percentile(seen.latencies_ms, 0.99):>8}"
                f" {seen.processor_seconds:>9.2f} {seen.all_seconds:>9.2f}"
                f" {scripts:>11.4f} {all_:>9.4f} {for_an_hour:>18.0f}",
                flush=True,
            )
        owner.close()
    print(
        f"load {os.getloadavg()[0]:.1f} at the end. $/M: dollars for a million atoms, at "
        f"${options.price} an hour of a processor and ${options.memory_price} of 1,024 MiB: of "
        f"scripts alone, and with what hands atoms to them and Postgres, which keeps them. {PAPER}"
    )


@contextmanager
def _document(code: str) -> Iterator[dict[str, Any]]:
    document = {
        "source": {"http": {}},
        "procedures": {"message": {"code": CODES[code]}},
        "links": [["source", "message"], ["message", "sink"]],
        "sink": {"collect": {}},
    }
    if code != CALL:
        yield document
        return
    with functions_called.receiving(CALL_SECONDS) as url:
        yield {**document, "sink": {"callback": {"url": url}}}


def _prepare(owner: Database, document: dict[str, Any]) -> None:
    owner.rows(
        "INSERT INTO tenants (id, name) OVERRIDING SYSTEM VALUE VALUES (1, 'bench');"
        "INSERT INTO workflows (id, tenant_id, created_at, updated_at) VALUES ('w', 1, 0, 0);"
        "INSERT INTO workflow_versions (workflow, version, tenant_id, content, created_at)"
        " VALUES ('w', 1, 1, %(text)s, 0)",
        {"text": orjson.dumps(document).decode()},
    )


def _measured(stores: ground.Stores, document: Workflow, atoms: int, instances: int) -> Seen:
    settings, postgres = stores.settings, stores.pids["postgres"]
    database, quick = (connect(settings, Role.DELIVERY, durable=each) for each in (True, False))
    queues, pool = PostgresAtoms(quick), sandbox_pool(settings, max_workers=instances)
    calls = Sinks(_no_log, PostgresStatements(database, "batches"), Caller(Rules(LOOPBACK)))
    sink, counted = _Sink(calls if document.sink == CALLBACK else None), _Counted()
    javascript = JavaScript(pool)
    scripts = Scripts(lambda _memory_mib: javascript)
    limits = Limits(instances, instances, 60_000, 90_000, 0.0)

    def step_of(workflow: Workflow, step: int) -> Step:
        return sink if step == workflow.sink_step else scripts

    accounts = Accounts(counted, counted)
    dispatcher = Dispatcher(queues, step_of, limits, accounts, NoQuotas(), close=quick.close)
    put = partial(PostgresAtoms(database).put, 1, "w", 1, document)
    now = int(time.time() * 1000)
    for first in range(0, atoms, PART):
        numbers = range(first, min(atoms, first + PART))
        put([(b'{"n":%d}' % each, now) for each in numbers], now)
    began, used = time.monotonic(), processes.with_postgres(postgres)
    # Latencies count from here: what stood in the queue before is no fault of anybody's.
    late = int(time.time() * 1000) - now
    dispatcher.run()
    seconds, others = time.monotonic() - began, processes.with_postgres(postgres) - used
    scripts_seconds = counted.processor_us / 1e6
    pool.close()
    database.close()
    quick.close()
    latencies = [max(0, each - late) for each in sink.latencies]
    memory = Work(mebibyte_ms=counted.mebibyte_ms).gibibyte_hours
    return Seen(seconds, latencies, scripts_seconds, scripts_seconds + others, memory)
