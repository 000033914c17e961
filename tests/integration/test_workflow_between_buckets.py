"""A workflow whose source and sink are a store that speaks S3: all of it but the program around.

The store of the tests (moto) looks at no signature; that these are right `test_bucket.py` shows
by boto3's own code.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from object_store import ObjectStore, object_store
from pyarrow import parquet
from sandbox_pools import a_pool
from waiting import until
from workflow_builders import LIMITS, a_document

from functions.accounts import Accounts
from functions.dispatcher import Dispatcher
from functions.files.columns import Columns
from functions.files.objects import Objects
from functions.files.source import Source
from functions.files.spool import Spool
from functions.scripts import Scripts
from functions.steps import Step
from sandbox import SandboxPool
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.workflows.model import LOOK, Workflow
from servioticy.domain.workflows.objects import HOUR_MS, LATE_MS
from servioticy.domain.workflows.stores import stores
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.database import Database
from servioticy.storage.gathered import PostgresGathered
from servioticy.storage.roles import Role

pytest.importorskip("moto", reason="the S3-compatible store of the tests is not installed")
HOUR = 1_764_216_000_000
"""2025-11-27T04:00:00Z"""
CODE = "function(row) { if (+row.celsius > -273.15) return {place: row.place, c: +row.celsius}; }"
DOCUMENT = a_document(
    procedures={"clean": {"code": CODE}},
    source={"files": {"store": "in", "prefix": "day/", "format": "csv", "separator": ";"}},
    sink={"parquet": {"store": "lake", "prefix": "out/"}},
)


class Nobody:
    """Whom everything is noted for, and who has used up nothing."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: ()


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with object_store() as found:
        found.client.create_bucket(Bucket="lake")
        yield found


@pytest.fixture
def pool() -> Iterator[SandboxPool]:
    found = a_pool()
    yield found
    found.close()


def test_files_of_a_bucket_become_objects_of_a_bucket(
    dsn: str, store: ObjectStore, pool: SandboxPool, tmp_path: Path
) -> None:
    owner = Database(dsn)
    owner.rows(
        "INSERT INTO tenants (id, name, public_id) OVERRIDING SYSTEM VALUE VALUES (1, 'a', 'me');"
        "INSERT INTO workflows (id, tenant_id, created_at, updated_at) VALUES ('w', 1, 0, 0);"
        "INSERT INTO workflow_versions (workflow, version, tenant_id, content, created_at)"
        " VALUES ('w', 1, 1, %(text)s, 0);"
        "INSERT INTO atoms (tenant_id, workflow, version, step, visible_at, entered_at, body)"
        " VALUES (1, 'w', 1, %(look)s, 0, 0, '{}')",
        {"text": orjson.dumps(DOCUMENT).decode(), "look": LOOK},
    )
    put, get = store.client.put_object, store.client.get_object
    rows = "".join(f"hall;{n}\n" for n in range(1_200))
    put(Bucket="lake", Key="raw/me/day/ä 1.csv", Body=b"place;celsius\nroof;-300\ncellar;31\n")
    put(Bucket="lake", Key="raw/me/day/2.csv", Body=f"place;celsius\n{rows}".encode())
    put(Bucket="lake", Key="raw/other/day/3.csv", Body=b"place;celsius\nsecret;1\n")
    database = Database(dsn, role=Role.DELIVERY)
    atoms = PostgresAtoms(database)
    opened = stores(
        {
            "in": store.url("lake", "raw/{tenant}"),
            "lake": store.url("lake", "made/{tenant}?write=yes"),
        }
    )
    now = [HOUR + 60_000]

    def clock() -> float:
        return now[0] / 1_000

    columns = Columns(Spool(tmp_path))
    source = Source(opened, atoms.public_id, columns)
    objects = Objects(PostgresGathered(database), opened, atoms.public_id, clock=clock)
    scripts = Scripts(lambda _memory_mib: JavaScript(pool))

    def step_of(workflow: Workflow, step: int) -> Step:
        if step < 0:
            return source
        return objects if step >= workflow.sink_step else scripts

    def work() -> None:
        nobody = Nobody()
        accounts = Accounts(nobody, nobody)
        Dispatcher(
            atoms, step_of, LIMITS, accounts, nobody, clock=clock, close=database.close
        ).run()

    def made() -> list[str]:
        listed = store.client.list_objects_v2(Bucket="lake", Prefix="made/")
        return [each["Key"] for each in listed.get("Contents", [])]

    def are_gathered() -> bool:
        work()
        return owner.rows("SELECT 1 FROM atoms WHERE step BETWEEN -1 AND 1") == []

    try:
        until(are_gathered)
        assert made() == []
        now[0] = HOUR + HOUR_MS + LATE_MS
        work()

        (key,) = made()
        body = get(Bucket="lake", Key=key)["Body"].read()
        found = parquet.read_table(io.BytesIO(body)).to_pylist()
        expected = [("cellar", 31.0), *(("hall", float(n)) for n in range(1_200))]
        assert key == "made/me/out/date=2025-11-27/hour=04/w-1-0.parquet"
        assert sorted((each["place"], each["c"]) for each in found) == expected
        assert owner.rows("SELECT reason FROM dead_atoms") == []
    finally:
        objects.close()
        source.close()
        database.close()
        owner.close()
