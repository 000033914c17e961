"""What it costs to let old updates go: a partition for each day, beside one table and deletes.

Both hold the same rows under the same key, in a Postgres of its own: some streams, each with as
many updates on every day. They are written, read, and lose their oldest day.
"""

from __future__ import annotations

import argparse
import io
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from servioticy.embedded.postgres import EmbeddedPostgres
from servioticy.settings import Settings
from servioticy.storage.database import Database

DAY = 86_400_000
FIRST_DAY = 20_000
"""Days since 1970; timestamps are milliseconds."""

TENANTS = 20
PIECE_ROWS = 500
LAYOUTS = ("one", "days")
COLUMNS = """
    tenant_id bigint NOT NULL, stream_id bigint NOT NULL, "timestamp" bigint NOT NULL,
    document json NOT NULL, version integer NOT NULL, log_partition integer NOT NULL,
    log_offset bigint NOT NULL, log_position integer NOT NULL, PRIMARY KEY (stream_id, "timestamp")
"""
FILL = """
INSERT INTO {table}
SELECT s %% %(tenants)s, s, %(begin)s + n * %(step)s + s,
       json_build_object('channels', json_build_object(
           'celsius', json_build_object('current-value', random() * 100, 'unit', 'C'),
           'location', json_build_object('current-value', '41.38,2.11'),
           'state', json_build_object('current-value', 'a sensor of building ' || s)),
           'lastUpdate', %(begin)s + n * %(step)s + s),
       1, 0, %(begin)s + n * %(streams)s + s, 0
  FROM generate_series(0, %(updates)s - 1) AS n, generate_series(1, %(streams)s) AS s
"""
SIZE = """
SELECT sum(pg_total_relation_size(oid))
  FROM pg_class
 WHERE relkind = 'r' AND relname ~ ('^' || %(layout)s || '(_|$)')
"""
ACCOUNTS = "SELECT tenant_id, sum(octet_length(document::text)) FROM {table} GROUP BY 1"
READS = {
    "last update": 'SELECT "timestamp", document::text, version FROM {table} '
    'WHERE stream_id = $1 ORDER BY "timestamp" DESC LIMIT 1',
    "page of 100, the newest": 'SELECT "timestamp", document::text FROM {table} '
    'WHERE stream_id = $1 AND "timestamp" <= $2 ORDER BY "timestamp" DESC LIMIT 100',
    "page of 100 from the first day on": 'SELECT "timestamp", document::text FROM {table} '
    'WHERE stream_id = $1 AND "timestamp" >= $3 ORDER BY "timestamp" LIMIT 100',
    "last updates of all streams": 'SELECT a.s, l."timestamp", l.document::text '
    "FROM generate_series(1, $4) AS a (s) CROSS JOIN LATERAL (SELECT * FROM {table} "
    'WHERE stream_id = a.s ORDER BY "timestamp" DESC LIMIT 1) AS l WHERE $1 > 0',
}
DELETE = """
WITH gone AS (
    DELETE FROM one
     WHERE stream_id = %(stream)s
       AND "timestamp" = ANY(ARRAY(SELECT "timestamp" FROM one
                                    WHERE stream_id = %(stream)s AND "timestamp" < %(end)s
                                    ORDER BY "timestamp" LIMIT %(most)s))
    RETURNING octet_length(document::text) AS bytes)
SELECT count(*), coalesce(sum(bytes), 0) FROM gone
"""


def run(_settings: Settings, arguments: Sequence[str]) -> None:
    """Fill both layouts and print a line for each thing measured."""
    parser = argparse.ArgumentParser("servioticy bench retention")
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--updates", type=int, default=24, help="of a stream on each day")
    parser.add_argument("--rounds", type=int, default=300)
    chosen = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="servioticy-retention-") as folder,
        _served(Path(folder)) as dsn,
    ):
        database = Database(dsn)
        try:
            measure(database, chosen)
        finally:
            database.close()


def measure(database: Database, chosen: argparse.Namespace) -> None:
    """Print the table: a line for each thing, a column for each layout."""
    database.rows("SET synchronous_commit = off")
    _make(database, chosen)
    figures: dict[str, dict[str, str]] = {}
    for layout in LAYOUTS:
        ((size,),) = database.rows(SIZE, {"layout": layout})
        a_row = size / (chosen.days * chosen.streams * chosen.updates)
        figures.setdefault("bytes of a row, indexes in it", {})[layout] = f"{a_row:.0f}"
    for layout in LAYOUTS:
        for name, statement in READS.items():
            rounds = chosen.rounds if "all" not in name else 20
            read = _read(database, layout, statement, chosen, rounds)
            figures.setdefault(f"{name}, ms", {})[layout] = read
    at = (FIRST_DAY + chosen.days) * DAY - 1
    for rows in (1, 32, 1000):
        took: dict[str, list[float]] = {layout: [] for layout in LAYOUTS}
        for _ in range(min(chosen.rounds, 30_000 // rows)):
            at += 1
            for layout in LAYOUTS:  # in turns
                took[layout].append(_timed(partial(_write, database, layout, at, rows)))
        figures[f"batch of {rows} new rows, ms"] = {k: _told(v) for k, v in took.items()}
    figures["the oldest day goes, s"] = {"one": _delete(database, chosen), "days": _drop(database)}
    for name, each in figures.items():
        print(f"{name:40} " + " ".join(f"{each[layout]:>40}" for layout in LAYOUTS), flush=True)


def _make(database: Database, chosen: argparse.Namespace) -> None:
    database.rows(f"CREATE TABLE one ({COLUMNS})")
    database.rows(f'CREATE TABLE days ({COLUMNS}) PARTITION BY RANGE ("timestamp")')
    # No DEFAULT: with one, Postgres does not know in which order partitions come.
    first, end = FIRST_DAY * DAY, (FIRST_DAY + chosen.days + 2) * DAY
    for name, bounds in (("before", f"MINVALUE) TO ({first}"), ("after", f"{end}) TO (MAXVALUE")):
        database.rows(f"CREATE TABLE days_{name} PARTITION OF days FOR VALUES FROM ({bounds})")
    for day in range(FIRST_DAY, FIRST_DAY + chosen.days + 2):
        bounds = f"FROM ({day * DAY}) TO ({(day + 1) * DAY})"
        database.rows(f"CREATE TABLE days_{day} PARTITION OF days FOR VALUES {bounds}")
    for table in LAYOUTS:
        database.rows(
            f"CREATE INDEX ON {table} USING brin (log_partition, log_offset) "
            "WITH (pages_per_range = 16, autosummarize = on)"
        )
    for day in range(FIRST_DAY, FIRST_DAY + chosen.days):
        values = {"begin": day * DAY, "step": DAY // chosen.updates, "tenants": TENANTS}
        values |= {"updates": chosen.updates, "streams": chosen.streams}
        for table in LAYOUTS:
            database.rows(FILL.format(table=table), values)
    for table in LAYOUTS:
        database.rows(f"VACUUM ANALYZE {table}")
    database.rows("CHECKPOINT")


def _read(
    database: Database, layout: str, statement: str, chosen: argparse.Namespace, rounds: int
) -> str:
    database.rows(
        f"PREPARE asked (bigint, bigint, bigint, integer) AS {statement.format(table=layout)}"
    )
    last = (FIRST_DAY + chosen.days) * DAY

    def ask(n: int) -> None:
        stream = 1 + n * 7919 % chosen.streams
        database.rows(f"EXECUTE asked ({stream}, {last}, {FIRST_DAY * DAY}, {chosen.streams})")

    for n in range(10):
        ask(n)
    took = [_timed(partial(ask, n)) for n in range(rounds)]
    database.rows("DEALLOCATE asked")
    return _told(took)


def _write(database: Database, layout: str, at: int, rows: int) -> None:
    lines = (
        f'1\t{s}\t{at}\t{{"channels":{{"celsius":{{"current-value":{s}}},"text":'
        f'{{"current-value":"{"x" * 120}"}}}},"lastUpdate":{at}}}\t1\t0\t{at}\t0\n'
        for s in range(1, rows + 1)
    )
    database.copy(f"COPY {layout} FROM STDIN", io.BytesIO("".join(lines).encode()))


def _delete(database: Database, chosen: argparse.Namespace) -> str:
    """The oldest day of every stream, in pieces, each a transaction; then it is vacuumed."""
    end, pieces, rows = (FIRST_DAY + 1) * DAY + chosen.streams, [], 0
    before = _wal(database)
    for stream in range(1, chosen.streams + 1):
        began = time.perf_counter()
        values = {"stream": stream, "end": end, "most": PIECE_ROWS}
        ((removed, _bytes),) = database.rows(DELETE, values)
        pieces.append(time.perf_counter() - began)
        rows += removed
    wal = _wal(database) - before
    vacuum = _timed(lambda: database.rows("VACUUM one"))
    return (
        f"{sum(pieces):.2f} (+{vacuum:.2f} vacuum; {1e6 * sum(pieces) / rows:.0f} us a row, "
        f"longest {1000 * max(pieces):.1f} ms, WAL {wal / rows:.0f} B a row)"
    )


def _drop(database: Database) -> str:
    """The oldest partition, when it is known how many bytes each tenant gets back."""
    table = f"days_{FIRST_DAY}"
    before = _wal(database)
    counted = _timed(lambda: database.rows(ACCOUNTS.format(table=table)))
    dropped = _timed(lambda: database.rows(f"DROP TABLE {table}"))
    return f"{dropped:.3f} (+{counted:.2f} accounts; WAL {_wal(database) - before} B)"


def _wal(database: Database) -> int:
    ((bytes_,),) = database.rows("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
    return int(bytes_)


def _timed(what: Callable[[], Any]) -> float:
    began = time.perf_counter()
    what()
    return time.perf_counter() - began


def _told(took: list[float]) -> str:
    ordered = sorted(took)
    return f"{1000 * median(took):.2f} / {1000 * ordered[int(len(ordered) * 0.99)]:.2f}"


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    postgres = EmbeddedPostgres(folder / "postgres")
    postgres.prepare()
    process = subprocess.Popen(postgres.command(), stderr=subprocess.DEVNULL)
    try:
        while not postgres.is_ready():
            time.sleep(0.1)
        yield postgres.dsn
    finally:
        process.send_signal(signal.SIGINT)  # at once, whoever is connected
        process.wait(60)
