"""What several tenants share is handed out by tenant in turn: pools, threads, queues, locks.

What knows no tenants serves whoever came first, so one with a thousand requests makes another's
wait for all of them. Each such place is named here with why it makes nobody wait so. Whoever
adds one says why, or takes what hands out in turn: FairExecutor, FairPlaces, OwnerSemaphore,
Turns, or the pools of the API's edge.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ("api", "broker", "delivery", "functions", "ingest", "servioticy")
KINDS = frozenset(
    [
        *("ThreadPoolExecutor", "ProcessPoolExecutor", "to_thread", "run_in_executor", "Thread"),
        *("Semaphore", "BoundedSemaphore", "Lock", "RLock", "Condition"),
        *("Queue", "SimpleQueue", "LifoQueue", "PriorityQueue"),
    ]
)

BRIEF = "held for a few steps in memory, in which nothing is asked of anybody"
OURS = "the platform's own work, a fixed number of them; no request waits for it"
TURNS = "gets one only where a thread is free; until then it waits in turn, by tenant"
WHY = {
    "api/backfills/filling.py:Filling.__init__": "one step of a job, which have theirs in turns",
    "api/background/worker.py:Worker.start": OURS,
    "api/edge/threads.py:Threads.__init__": TURNS + " (edge/pools.py)",
    "api/edge/waiter.py:Waiter.__init__": "asks for all that wait in one round, however many",
    "api/http/attempts.py:Attempts.__init__": BRIEF,
    "api/http/idempotency.py:Idempotency.__init__": BRIEF,
    "api/http/reading.py:Reading.__init__": BRIEF,
    "api/http/reading.py:Reading.start": OURS,
    "api/platform/slowest.py:Slowest.__init__": "one tenant asks, who operates the platform",
    "api/platform/telling.py:Programs.__init__": "one tenant asks, who operates the platform",
    "api/resources/operators.py:_Walls.__init__": "looks once for all, who push and wait for that",
    "api/resources/tokens.py:_Ended.__init__": BRIEF,
    "api/stepping/apart.py:StepsApart.__init__": BRIEF,
    "api/workers.py:inherited": OURS,
    "broker/claims.py:Claims.__init__": "one that waits of each address",
    "broker/claims.py:Claims.ask": "a lock for each address",
    "broker/intake.py:Intake.__init__": "of one client",
    "broker/lane.py:Lane.__init__": "tenants' parts in rounds",
    "broker/lane.py:Lane._go_on": "what a round has taken",
    "broker/lane.py:Lane._patiently": "a place of FairPlaces was waited for",
    "broker/lane.py:_Patience.__init__": "its places are given by tenants in turn",
    "delivery/accounts.py:Accounts._settle_deliveries": OURS,
    "delivery/accounts.py:Accounts._settle_spending": OURS,
    "delivery/accounts.py:Accounts.look": OURS,
    "delivery/actuations/actuating.py:Actuating.stop": OURS,
    "delivery/admission/fair_executor.py:FairExecutor.__init__": TURNS,
    "delivery/admission/fair_executor.py:FairExecutor.run": TURNS,
    "delivery/admission/overrides.py:Overrides.look": OURS,
    "delivery/admission/spending.py:Spending.__init__": BRIEF,
    "delivery/admission/stays.py:Stays.__init__": "one that listens, one that asks for all due",
    "delivery/admission/stays.py:Stays._blocking": "one that listens, one that asks for all due",
    "delivery/byte_semaphore.py:ByteSemaphore.__init__": "one reader of the topic waits there",
    "delivery/callbacks/asked_tests.py:AskedTests._send": "ten tests of a tenant at most",
    "delivery/callbacks/asked_tests.py:AskedTests.send_all": OURS,
    "delivery/callbacks/lookups.py:Lookups.__init__": "a place of FairPlaces was waited for",
    "delivery/callbacks/lookups.py:Lookups.look_up": "a place of FairPlaces was waited for",
    "delivery/callbacks/receiver.py:Callbacks.attempt": "of one tenant and host",
    "delivery/evaluating/evaluator.py:Evaluator.stop": OURS,
    "delivery/feeds/beginnings.py:Beginnings.of": "one question a partition, for all who wait",
    "delivery/feeds/feeds.py:Feeds.__init__": "one round for all feeds, over one connection",
    "delivery/feeds/feeds.py:Feeds._asked": "one round for all feeds, over one connection",
    "delivery/feeds/rereading.py:Rereading._begin": "one question for all who are new, or one",
    "delivery/feeds/rereading.py:Rereading._fill": "one page at a time, by tenants in turn",
    "delivery/peering.py:Peering.__init__": "one that listens, one that tells for all",
    "delivery/peering.py:Peering._asked": "one that listens, one that tells for all",
    "delivery/serving.py:read": OURS,
    "functions/accounts.py:Accounts.__init__": BRIEF,
    "functions/calling.py:Caller.__init__": "32 names, of which a tenant's places leave enough",
    "functions/calling.py:Caller._addresses": "one of those",
    "functions/calling.py:_Deadline.__init__": "of one call, and held for a moment",
    "functions/dispatcher.py:Dispatcher.__init__": BRIEF,
    "functions/files/columns.py:Columns.__init__": BRIEF,
    "functions/files/source.py:Source.__init__": BRIEF,
    "functions/hands.py:Hands.__init__": BRIEF,
    "functions/hands.py:Hands.give": "a place was given to the tenant in its turn",
    "functions/hands.py:Hands.prepare": OURS,
    "functions/programs.py:Asking.__init__": "each waits for its own answer",
    "functions/programs.py:Asking._listen": OURS,
    "api/platform/balancing.py:Balancing.__init__": (
        "the operator's alone, and whoever finds it taken is told so at once"
    ),
    "functions/programs.py:Known.__init__": BRIEF,
    "functions/scripts.py:Scripts.__init__": BRIEF,
    "functions/sinks.py:Sinks.__init__": "the first makes what all use, which takes a second once",
    "functions/working.py:_listening": OURS,
    "functions/working.py:_work": OURS,
    "servioticy/apart/answering.py:serve": OURS,
    "servioticy/storage/atoms.py:PostgresAtoms.waiting": "the name of one, nobody waits in it",
    "servioticy/storage/outside_tables.py:PostgresOutsideTables.__init__": BRIEF,
    "ingest/pacing.py:Pacing.__init__": BRIEF,
    "ingest/quotas.py:SendersQuotas.__init__": BRIEF,
    "ingest/sharing.py:Sharing.start": OURS,
    "ingest/updates_waiting.py:UpdatesWaiting.__init__": BRIEF,
    "servioticy/domain/cache.py:Cache.__init__": BRIEF,
    "servioticy/domain/remembered.py:Remembered.__init__": BRIEF,
    "servioticy/embedded/downloads.py:fetch": OURS,
    "servioticy/doors/certificate.py:Certificate.start": OURS,
    "servioticy/identity/keys.py:IssuerKeys.start": OURS,
    "servioticy/identity/logins.py:_Places.__init__": BRIEF,
    "servioticy/forgetting.py:Forgetting.start": OURS,
    "servioticy/logs.py:_tell_now_and_then": OURS,
    "servioticy/messaging/consumer.py:EmittedReader.start": OURS,
    "servioticy/messaging/emitted_pages.py:KafkaEmittedPages.__init__": (
        "who reads again asks one page at a time, Beginnings one question a partition and moment"
    ),
    "servioticy/messaging/grouped_producer.py:_Turn.__init__": BRIEF,
    "servioticy/messaging/log_writer.py:LogWriter.__init__": OURS,
    "servioticy/messaging/log_writer.py:_Acknowledgements.__init__": "one caller's own",
    "servioticy/messaging/replicas_behind.py:ReplicasBehind.__init__": (
        "asks once for all whom no broker has answered, half a second at most"
    ),
    "servioticy/metrics/server.py:Server.__init__": OURS,
    "servioticy/often.py:NotTooOften._begin": BRIEF,
    "servioticy/tracebacks.py:Tracebacks._begin": BRIEF,
    "servioticy/storage/connections.py:Shared.__init__": BRIEF,
    "servioticy/storage/connections.py:_beside": OURS,
    "servioticy/turns.py:Turns.__init__": BRIEF,
}


def places(package: str) -> Iterator[str]:
    """Yield where something is made, or used, that knows no tenants: `file:Class.function`."""
    for path in sorted((ROOT / package).rglob("*.py")):
        for name in _places(ast.parse(path.read_text("utf-8")), ()):
            yield f"{path.relative_to(ROOT)}:{name}"


def _places(node: ast.AST, within: tuple[str, ...]) -> Iterator[str]:
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        within = (*within, node.name)
    if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in KINDS:
        yield ".".join(within)
    for child in ast.iter_child_nodes(node):
        yield from _places(child, within)


@pytest.mark.parametrize("package", PROGRAMS)
def test_of_all_that_knows_no_tenants_it_is_told_why_nobody_waits_for_another(
    package: str,
) -> None:
    told = {each for each in WHY if each.startswith(f"{package}/")}
    found = set(places(package))

    assert found - told == set(), "say why these make no tenant wait for another"
    assert told - found == set(), "these are gone"


def test_each_way_to_share_is_seen() -> None:
    """Else the list above would say little."""
    tree = ast.parse(
        "class A:\n  async def f(self):\n    await asyncio.to_thread(g)\n    Lock()\n"
    )

    assert list(_places(tree, ())) == ["A.f", "A.f"]
