"""No atom is lost, whatever of functions is killed: the program, what works, sandbox processes.

`SERVIOTICY_TEST_ATOMS=100000` makes it as many as that; continuous integration has fewer. What
comes more than once is counted by `servioticy bench functions --kills`, too.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import orjson
import pytest
from waiting import until
from workflow_builders import a_document, a_queue, a_workflow

from servioticy.settings import changed, load, to_environment
from servioticy.storage import atoms as storage
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.database import Database

ATOMS = int(os.environ.get("SERVIOTICY_TEST_ATOMS", "400"))
SECONDS = 300 + ATOMS // 50
KILLS = 4
OF_A_TENANT = 3
"""Instances, on all machines."""
CODE = "function(a) { let n = 0; for (let i = 0; i < 50000; i++) n += i % 7; return {n: a.n}; }"
DOCUMENT = a_document("slow", procedures={"slow": {"code": CODE, "attempts": 20}})


@pytest.fixture
def owner(dsn: str) -> Iterator[Database]:
    database = Database(dsn)
    text = orjson.dumps(DOCUMENT).decode()
    database.rows(
        "INSERT INTO tenants (id, name, public_id) OVERRIDING SYSTEM VALUE VALUES (1, 'a', 'me');"
        "INSERT INTO workflows (id, tenant_id, created_at, updated_at) VALUES ('w', 1, 0, 0);"
        "INSERT INTO workflow_versions (workflow, version, tenant_id, content, created_at)"
        " VALUES ('w', 1, 1, %(text)s, 0)",
        {"text": text},
    )
    # Whatever comes to the sink is to be counted, however much it is.
    database.rows(
        "CREATE TABLE arrived AS SELECT body FROM collected_atoms;"
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
        " INSERT INTO public.arrived VALUES (NEW.body); RETURN NULL; END $$;"
        "CREATE TRIGGER keep AFTER INSERT ON collected_atoms"
        " FOR EACH ROW EXECUTE FUNCTION keep()"
    )
    # How many instances there are whenever one more begins.
    database.rows(
        "CREATE TABLE beside AS SELECT 0::bigint AS instances;"
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
        " INSERT INTO public.beside SELECT count(*) FROM public.workflow_instances"
        " WHERE ends_at > NEW.began_at; RETURN NULL; END $$;"
        "CREATE TRIGGER note AFTER INSERT ON workflow_instances"
        " FOR EACH ROW EXECUTE FUNCTION note()"
    )
    yield database
    database.close()


class Program:
    """`servioticy functions` on this Postgres, with what it has started."""

    def __init__(self, dsn: str, log: Path) -> None:
        self.folder = log.parent / "files" / "1"
        settings = changed(
            load(),
            dsn=dsn,
            bootstrap_servers="127.0.0.1:1",
            functions_metrics_port=0,
            functions_instances_per_tenant=OF_A_TENANT,
            functions_lifetime_seconds=1.0,
            functions_visibility_seconds=11.0,
            functions_idle_seconds=0.0,
            functions_spare=False,
            functions_stores={"in": f"file://{self.folder}?tenants=me"},
        )
        self._environment = {**os.environ, **to_environment(settings)}
        self._log = log
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "functions"],
                env=self._environment,
                cwd=Path(__file__).parents[2],
                stderr=out,
            )

    def working(self) -> list[int]:
        """The process that works, if there is one."""
        return children(self.process.pid)

    def sandboxes(self) -> list[int]:
        return [
            worker
            for working in self.working()
            for zygote in children(working)
            for worker in children(zygote)
        ]

    def kill(self) -> None:
        """As a supervisor does: another one begins."""
        self.process.kill()
        self.process.wait()
        self.process = self._started()

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()


def children(pid: int) -> list[int]:
    try:
        threads = Path(f"/proc/{pid}/task").iterdir()
        found = [(each / "children").read_text().split() for each in threads]
    except OSError:
        return []
    return [int(each) for some in found for each in some]


@pytest.fixture
def program(dsn: str, owner: Database, tmp_path: Path) -> Iterator[Program]:
    if not Path("/proc/self/task").exists():
        pytest.skip("processes are found by Linux's /proc")
    found = Program(dsn, tmp_path / "functions.log")
    yield found
    found.end()


@pytest.fixture
def beside(dsn: str, program: Program, tmp_path: Path) -> Iterator[Program]:
    """That of another machine."""
    found = Program(dsn, tmp_path / "beside.log")
    yield found
    found.end()


def kill_now_and_then(programs: Sequence[Program], arrived: Callable[[], int]) -> int:
    """Kill a sandbox, what works, and the program itself, while atoms arrive; how often.

    Of whichever works: as quick machines are, one may have left nothing to the other.
    """
    chance, killed = random.Random(7), 0
    for kill in range(1, KILLS + 1):
        until(lambda kill=kill: arrived() >= kill * ATOMS // (KILLS + 2), SECONDS)
        until(lambda: any(e.working() for e in programs) or arrived() >= ATOMS, SECONDS)
        program = next((each for each in programs if each.working()), None)
        if program is None:
            break
        if kill % 2:
            victims = program.sandboxes() or program.working()
            _kill(chance.choice(victims) if victims else None)
        elif kill == KILLS:
            program.kill()
        else:
            _kill(next(iter(program.working()), None))
        killed += 1
    return killed


def _kill(pid: int | None) -> None:
    """It may have ended by itself just now."""
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.timeout(3 * SECONDS)
def test_no_atom_is_lost_whatever_is_killed(
    owner: Database,
    program: Program,
    beside: Program,
    record_property: Callable[[str, object], None],
) -> None:
    """All come to the sink; and once, as what is collected is so as its atom ends.

    Of two machines one or the other is killed again and again: together they never have more
    instances of the tenant than it may have, and what the dead held is another's after a while.
    """
    queues, read = PostgresAtoms(owner), a_workflow("slow", procedures=DOCUMENT["procedures"])
    for first in range(0, ATOMS, 100):
        given = [(b'{"n":%d}' % n, 1_000) for n in range(first, min(ATOMS, first + 100))]
        assert queues.put(1, "w", 1, read, given, 0)

    def arrived() -> int:
        return int(owner.rows("SELECT count(*) FROM arrived")[0][0])

    assert kill_now_and_then((program, beside), arrived)
    until(lambda: arrived() >= ATOMS and not queues.waiting(2**62), SECONDS)

    bodies = [orjson.loads(body)["n"] for (body,) in owner.rows("SELECT body FROM arrived")]
    counts = Counter(bodies)
    record_property("twice", sum(count > 1 for count in counts.values()))
    assert sorted(counts) == list(range(ATOMS))
    assert set(counts.values()) == {1}
    assert owner.rows("SELECT 1 FROM dead_atoms") == []
    assert len(owner.rows("SELECT 1 FROM collected_atoms")) <= storage.MAX_COLLECTED
    until(
        lambda: not program.working() and not beside.working(), SECONDS
    )  # nothing runs while nothing waits
    assert queues.held(a_queue().tenant) == (0, 0)
    assert owner.rows("SELECT max(instances) FROM beside") == [(OF_A_TENANT,)]


@pytest.mark.timeout(3 * SECONDS)
def test_no_line_of_a_file_is_lost_whatever_is_killed(owner: Database, program: Program) -> None:
    """Several files, each longer than a portion: what was cut and what is left is one thing."""
    program.folder.mkdir(parents=True)
    for file in range(4):
        lines = "".join(f'{{"n":{n}}}\n' for n in range(ATOMS) if n % 4 == file)
        (program.folder / f"{file}.ndjson").write_text(lines)
        os.utime(program.folder / f"{file}.ndjson", (1, 1))
    source = {"files": {"store": "in", "format": "ndjson", "every": 5}}
    text = orjson.dumps({**DOCUMENT, "source": source}).decode()
    owner.rows(
        "UPDATE workflow_versions SET content = %(text)s;"
        "INSERT INTO atoms (tenant_id, workflow, version, step, visible_at, entered_at, body)"
        " VALUES (1, 'w', 1, -2, 0, 0, '{}'); NOTIFY atoms",
        {"text": text},
    )

    def arrived() -> int:
        return int(owner.rows("SELECT count(*) FROM arrived")[0][0])

    def all_done() -> bool:
        waiting = owner.rows("SELECT 1 FROM atoms WHERE step > -2 LIMIT 1")
        return arrived() >= ATOMS and not waiting

    assert kill_now_and_then((program,), arrived)
    until(all_done, SECONDS)

    bodies = [orjson.loads(body)["n"] for (body,) in owner.rows("SELECT body FROM arrived")]
    assert sorted(bodies) == list(range(ATOMS))
    assert owner.rows("SELECT 1 FROM dead_atoms") == []
