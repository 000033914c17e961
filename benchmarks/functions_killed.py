"""Atoms on their way while what works on them is killed at random: all come, and how many twice.

The program `functions` runs as it does in earnest, on a Postgres of its own. Killed are sandbox
processes, the process that works, and the program itself, which is begun again as a supervisor
does it. Whatever comes to the sink is counted: results, which come with the
end of their atom in one transaction, or rows of a table without a key, which do not.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from typing import Any

import orjson

from benchmarks import ground, processes
from servioticy.domain.workflows.model import Workflow
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.settings import Settings, changed, to_environment
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.database import Database

LIFETIME_SECONDS, VISIBILITY_SECONDS = 5.0, 15.0
LOOK_SECONDS = 0.2
ATTEMPTS = 20
DOCUMENT: dict[str, Any] = {
    "source": {"http": {}},
    "procedures": {
        "message": {
            "code": "function(atom) { return {n: atom.n, even: atom.n % 2 === 0}; }",
            "attempts": ATTEMPTS,
        }
    },
    "links": [["source", "message"], ["message", "sink"]],
}
SINKS: dict[str, Any] = {
    "collect": {"collect": {}},
    "table": {"table": {"database": "bench", "table": "arrived"}},
}
PART = 1_000
PREPARE = (
    "INSERT INTO tenants (id, name, public_id) OVERRIDING SYSTEM VALUE"
    " VALUES (1, 'bench', 'bench');"
    "INSERT INTO workflows (id, tenant_id, created_at, updated_at) VALUES ('w', 1, 0, 0);"
    "INSERT INTO workflow_versions (workflow, version, tenant_id, content, created_at)"
    " VALUES ('w', 1, 1, %(text)s, 0);"
    # Of results only the newest are kept: here all of them are to be counted.
    "CREATE SCHEMA bench; CREATE TABLE bench.arrived (n bigint NOT NULL, even boolean);"
    "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
    " INSERT INTO bench.arrived (n) VALUES ((NEW.body::json ->> 'n')::bigint); RETURN NULL;"
    " END $$;"
    "CREATE TRIGGER keep AFTER INSERT ON collected_atoms FOR EACH ROW EXECUTE FUNCTION keep()"
)


class _Program:
    """`functions`, begun again where it is killed."""

    def __init__(self, settings: Settings) -> None:
        own = changed(
            settings,
            functions_metrics_port=0,
            functions_lifetime_seconds=LIFETIME_SECONDS,
            functions_visibility_seconds=VISIBILITY_SECONDS,
            functions_databases={"bench": f"{settings.store.dsn}/{{tenant}}?sslmode=disable"},
        )
        self._environment = {**os.environ, **to_environment(own)}
        self.process = self._begun()

    def _begun(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-P", "-m", "functions"], env=self._environment)

    def kill_one(self, chance: random.Random) -> None:
        """Kill one of all that there is, whichever it is."""
        alive = processes.tree(self.process.pid)
        victim = chance.choice(alive) if alive else self.process.pid
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            return
        if victim == self.process.pid:
            self.process.wait()
            self.process = self._begun()

    def end(self) -> None:
        """End it, and all of its."""
        self.process.terminate()
        self.process.wait()


def measure(settings: Settings, atoms: int, kills: int, sink: str) -> None:
    """Print what came, and how often."""
    print(f"load {os.getloadavg()[0]:.1f} at the start")
    chance = random.Random(7)  # noqa: S311  for kills, not for secrets
    with ground.stores(settings) as stores:
        owner = Database(stores.settings.store.dsn)
        document = {**DOCUMENT, "sink": SINKS[sink]}
        owner.rows(PREPARE, {"text": orjson.dumps(document).decode()})
        _put(PostgresAtoms(owner), parse_workflow(document), atoms)
        program = _Program(stores.settings)
        began = time.monotonic()
        try:
            killed = 0
            # One that is lost, or becomes a dead letter, never comes: the queue tells the end.
            while owner.rows("SELECT 1 FROM atoms LIMIT 1"):
                time.sleep(LOOK_SECONDS)
                done = _count(owner)
                while killed < kills and done >= (killed + 1) * atoms // (kills + 1):
                    program.kill_one(chance)
                    killed += 1
                    done = _count(owner)
                if program.process.poll() is not None:
                    raise RuntimeError("the program has ended by itself")
        finally:
            program.end()
        seconds = time.monotonic() - began
        _tell(owner, atoms, killed, seconds)
        owner.close()


def _put(queues: PostgresAtoms, read: Workflow, atoms: int) -> None:
    now = int(time.time() * 1_000)
    for first in range(0, atoms, PART):
        numbers = range(first, min(atoms, first + PART))
        queues.put(1, "w", 1, read, [(b'{"n":%d}' % each, now) for each in numbers], now)


def _count(owner: Database) -> int:
    return int(owner.rows("SELECT count(*) FROM bench.arrived")[0][0])


def _tell(owner: Database, atoms: int, killed: int, seconds: float) -> None:
    each = "SELECT count(*) AS often FROM bench.arrived GROUP BY n"
    ((came, twice),) = owner.rows(
        f"SELECT count(*), count(*) FILTER (WHERE often > 1) FROM ({each}) AS each"  # noqa: S608
    )
    ((dead,),) = owner.rows("SELECT count(*) FROM dead_atoms")
    print(
        f"{atoms} atoms, {killed} killed: {came} came, {atoms - came} are lost,"
        f" {twice} came more than once, {dead} are dead letters; {seconds:.0f} s,"
        f" load {os.getloadavg()[0]:.1f} at the end"
    )
