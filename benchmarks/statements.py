"""What the statements of the hot paths cost, in processor time of Postgres and of the caller.

As the programs run them, in their roles. The clock is not looked at: so the figures hold on a
machine with other work, too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from benchmarks import ground
from sandbox import argument_names
from servioticy.bootstrap import connect
from servioticy.domain.model import StreamKey, StreamRef
from servioticy.ports.accounts import Use
from servioticy.ports.addresses import Lookup
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.change_store import NewServiceObject
from servioticy.settings import Settings
from servioticy.storage.addresses import PostgresAddresses
from servioticy.storage.change_store import PostgresChangeStore
from servioticy.storage.database import Database
from servioticy.storage.history import PostgresHistory
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.roles import Role
from servioticy.storage.statements import PostgresStatements
from servioticy.storage.tenants import PostgresTenants

UPDATE = b'{"channels":{"v":{"current-value":1}},"lastUpdate":1}'
DOCUMENT = b'{"streams":{"s":{"channels":{"v":{"type":"number"}}}}}'
HISTORY = 10_000
WARM = 30
"""Times before it is measured: what is prepared has its plan then."""


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print a line for each statement."""
    parser = argparse.ArgumentParser("servioticy bench statements")
    parser.add_argument("--times", type=int, default=2_000, help="that each is run")
    parser.add_argument("--no-security", action="store_true", help="rows are nobody's: no roles")
    options = parser.parse_args(arguments)
    times = options.times
    with ground.stores(settings) as stores:
        api_role, pipeline_role = (
            (None, None) if options.no_security else (Role.API, Role.PIPELINE)
        )
        api = connect(stores.settings, api_role, statement_seconds=30.0)
        pipeline = connect(stores.settings, pipeline_role, durable=False)
        tenants = PostgresTenants(api)
        token = tenants.create_tenant("bench")
        tenant = tenants.tenant_of(token) or 0
        new = NewServiceObject("so", tenant, False, DOCUMENT, ("s",), (), 0)
        PostgresChangeStore(api).create(new, 1)
        addresses, history = PostgresAddresses(api), PostgresHistory(api)
        address = addresses.address(token, "so", "s")
        stream = address.stream if address else None
        if stream is None:
            raise LookupError("so")
        store = PostgresPartitionStore(pipeline, argument_names)
        batch = _batches(store, stream)
        for _ in range(HISTORY // 500):
            batch(500)
        owner = connect(stores.settings)
        owner.rows("ANALYZE")  # as autovacuum does within a minute
        owner.close()
        _measure("who asks, for what", api, times, lambda: addresses.address(token, "so", "s"))
        many = [Lookup(token, "so", "s")] * 20
        _measure("the same of 20 PUTs", api, times, lambda: addresses.addresses(many))
        _measure("how far it is stored", api, times, lambda: history.stored(0, [tenant]))
        _measure("last update", api, times, lambda: history.last_update(stream))
        page = (0, 10**9)
        _measure("page of 100", api, times // 5, lambda: history.page(stream, page, 100, 10**9))
        _measure("batch of 1 row", pipeline, times, lambda: batch(1))
        _measure("batch of 100 rows", pipeline, times // 5, lambda: batch(100))
        use = Use(
            tenant,
            StreamRef("so", "s"),
            tenant,
            updates=1,
            rows=1,
            bytes=100,
            computations={"emitted": 1, "stale": 1},
        )
        _measure("accounts of a stream", pipeline, times // 5, lambda: store.account([use]))
        quotas = PostgresStatements(api, "used_quotas")
        twenty = [tenant, *range(10**6, 10**6 + 19)]
        _measure("quotas of 20", api, times, lambda: quotas.rows("known", tenants=twenty))
        api.close()
        pipeline.close()


def _batches(store: PostgresPartitionStore, stream: StreamKey) -> Callable[[int], None]:
    """Return what stores a batch of so many updates, each newer than all before."""
    offsets = count()
    store.begin(0)

    def batch(rows: int) -> None:
        some = [next(offsets) for _ in range(rows)]
        updates = [StoredUpdate(*stream, n, UPDATE, 1, n, 0, True) for n in some]
        store.store(Batch(0, some[0], some[-1] + 1, 0, updates))

    return batch


def _measure(name: str, database: Database, times: int, work: Callable[[], object]) -> None:
    (pid,) = database.rows("SELECT pg_backend_pid()")[0]
    for _ in range(WARM):
        work()
    theirs, ours = _used(pid), time.process_time()
    for _ in range(times):
        work()
    theirs, ours = _used(pid) - theirs, time.process_time() - ours
    print(f"{name}: Postgres {1e6 * theirs / times:.0f}, caller {1e6 * ours / times:.0f} µs")


def _used(pid: int) -> float:
    """Return the seconds of processor time that a process has had."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
