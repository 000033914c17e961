"""The queues: shown to one taker at a time, and what is done is done together with what comes of
it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson
import pytest
from workflow_builders import a_document, a_queue, a_workflow

from servioticy.ports.atoms import Atom, Begun, Product, Queue
from servioticy.storage import atoms as storage
from servioticy.storage.atoms import _PLACES, PostgresAtoms
from servioticy.storage.database import Database
from servioticy.storage.queries import queries
from servioticy.storage.roles import Role

NOW = 1_000_000
UNTIL = NOW + 90_000
READ = a_workflow("clean", "sort")
TEXT = orjson.dumps(a_document("clean", "sort")).decode()


@pytest.fixture
def owner(dsn: str) -> Iterator[Database]:
    database = Database(dsn)
    for tenant, workflow in ((1, "w"), (2, "v")):
        database.rows(
            "INSERT INTO tenants (id, name) OVERRIDING SYSTEM VALUE VALUES (%(tenant)s, %(name)s)",
            {"tenant": tenant, "name": workflow},
        )
        values = {"tenant": tenant, "id": workflow, "content": TEXT}
        database.rows(
            "INSERT INTO workflows (id, tenant_id, created_at, updated_at)"
            " VALUES (%(id)s, %(tenant)s, 0, 0);"
            "INSERT INTO workflow_versions (workflow, version, tenant_id, content, created_at)"
            " VALUES (%(id)s, 1, %(tenant)s, %(content)s, 0)",
            values,
        )
    yield database
    database.close()


@pytest.fixture
def atoms(dsn: str, owner: Database) -> Iterator[PostgresAtoms]:
    """As the program has them, in its role."""
    database = Database(dsn, role=Role.DELIVERY)
    yield PostgresAtoms(database)
    database.close()


QUEUE = a_queue()


def put(atoms: PostgresAtoms, *bodies: bytes, queue: Queue = QUEUE) -> None:
    given = [(body, NOW) for body in bodies]
    assert atoms.put(queue.tenant, queue.workflow, 1, READ, given, NOW)


def take(atoms: PostgresAtoms, instance: int = 1, most: int = 10, now: int = NOW) -> list[Atom]:
    return atoms.take(QUEUE, instance, most, now, UNTIL)


def counts(owner: Database) -> dict[int, tuple[int, int]]:
    """Atoms and bytes by step: what is counted, which is what is there."""
    sql = (
        "SELECT step, sum(atoms)::int, sum(bytes)::int FROM atom_counts"
        " WHERE workflow = 'w' GROUP BY step HAVING sum(atoms) <> 0"
    )
    counted = {step: (number, size) for step, number, size in owner.rows(sql)}
    sql = (
        "SELECT step, count(*)::int, sum(octet_length(body))::int FROM atoms"
        " WHERE workflow = 'w' GROUP BY step"
    )
    assert counted == {step: (number, size) for step, number, size in owner.rows(sql)}
    return counted


def test_what_comes_in_is_taken_in_its_order_by_one_only(atoms: PostgresAtoms) -> None:
    put(atoms, b'{"n":1}', b'{"n":2}', b'{"n":3}')

    first, others = take(atoms, most=2), take(atoms, instance=2)

    assert [each.body for each in first] == [b'{"n":1}', b'{"n":2}']
    assert [each.body for each in others] == [b'{"n":3}']
    assert take(atoms, instance=3) == []
    assert [each.attempts for each in first] == [1, 1]


def test_what_was_taken_is_shown_again_after_its_time(atoms: PostgresAtoms) -> None:
    """Not a millisecond before."""
    put(atoms, b"{}")
    (first,) = take(atoms)

    assert take(atoms, instance=2, now=UNTIL - 1) == []
    (again,) = take(atoms, instance=2, now=UNTIL)
    assert (again.id, again.attempts) == (first.id, 2)


def test_many_at_once_never_take_the_same(dsn: str, atoms: PostgresAtoms) -> None:
    put(atoms, *[b'{"n":%d}' % n for n in range(200)])

    def taker(instance: int) -> list[int]:
        own = Database(dsn, role=Role.DELIVERY)
        found, queues = [], PostgresAtoms(own)
        while some := queues.take(QUEUE, instance, 7, NOW, UNTIL):
            found += [each.id for each in some]
        own.close()
        return found

    with ThreadPoolExecutor(6) as pool:
        taken = [id_ for ids in pool.map(taker, range(6)) for id_ in ids]

    assert len(taken) == len(set(taken)) == 200


def put_where_one_is_known_of(owner: Database, atoms: PostgresAtoms) -> None:
    """Put 21, of which Postgres knows one."""
    owner.rows("TRUNCATE atoms")
    put(atoms, b"{}")
    owner.rows("ANALYZE atoms")
    put(atoms, *[b"{}"] * 20)


def test_no_plan_takes_more_than_were_asked_for(owner: Database, atoms: PostgresAtoms) -> None:
    """Where it thinks that there is one atom Postgres looks at all of them first, and for each
    at those that are chosen. A subquery then chooses again, and others each time, as the ones
    before are locked: the same words as a subquery take all, so it is that plan."""
    sql = queries("atoms")["take"]
    chosen, rest = sql[sql.index("(") + 1 :].split(")\nUPDATE", 1)
    asked_again = f"UPDATE{rest}".replace("FROM chosen", f"FROM ({chosen}) AS chosen")
    values = {**QUEUE._asdict(), "instance": 1, "most": 2, "now": NOW, "until": UNTIL}

    put_where_one_is_known_of(owner, atoms)
    assert len(owner.rows(asked_again, values)) == 21
    put_where_one_is_known_of(owner, atoms)
    assert len(take(atoms, most=2)) == 2


def test_what_is_done_goes_with_what_was_made_of_it(owner: Database, atoms: PostgresAtoms) -> None:
    put(atoms, b"{}", b"{}")
    one, two = take(atoms)
    made = [Product(one.id, 1, 0, b'{"of":1}'), Product(one.id, 2, 500, b'{"of":1}')]

    assert atoms.finish(QUEUE, 1, [one.id], made, NOW) == 1

    assert counts(owner) == {0: (1, 2), 1: (1, 8), 2: (1, 8)}
    (waits,) = [each for each in atoms.waiting(NOW) if each.queue.step == 2]
    assert (waits.ready, waits.due_ms) == (0, NOW + 500)
    (next_,) = atoms.take(a_queue(step=1), 3, 9, NOW, UNTIL)
    assert next_.entered_ms == NOW
    assert two.id != next_.id


def test_whoever_lost_an_atom_finishes_nothing_of_it(
    owner: Database, atoms: PostgresAtoms
) -> None:
    """Its time was over, and another has taken it: what it made is not there twice."""
    put(atoms, b"{}")
    (lost,) = take(atoms)
    take(atoms, instance=2, now=UNTIL)
    made = [Product(lost.id, 1, 0, b"{}")]

    assert atoms.finish(QUEUE, 1, [lost.id], made, UNTIL) == 0
    assert counts(owner) == {0: (1, 2)}
    assert atoms.finish(QUEUE, 2, [lost.id], made, UNTIL) == 1
    assert counts(owner) == {1: (1, 2)}
    assert atoms.finish(QUEUE, 2, [lost.id], made, UNTIL) == 0  # asked twice it takes effect once
    assert counts(owner) == {1: (1, 2)}


def test_what_is_given_back_may_be_taken_from_its_time_on(atoms: PostgresAtoms) -> None:
    put(atoms, b"{}", b"{}")
    one, two = take(atoms)
    atoms.give_back(QUEUE, 1, {one.id: NOW + 5}, counts=True)
    atoms.give_back(QUEUE, 1, {two.id: NOW + 5}, counts=False)

    assert take(atoms, instance=2, now=NOW + 4) == []
    again = take(atoms, instance=2, now=NOW + 5)
    assert [(each.id, each.attempts) for each in again] == [(one.id, 2), (two.id, 1)]


def test_dead_letters_keep_why_and_the_oldest_go(
    owner: Database, atoms: PostgresAtoms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MAX_DEAD", 2)
    put(atoms, *[b'{"n":%d}' % n for n in range(3)])
    for each in take(atoms):
        atoms.bury(QUEUE, 1, {each.id: "error: \0" + "x" * 1_000}, NOW)

    rows = owner.rows("SELECT body, reason FROM dead_atoms ORDER BY id")
    assert [body for body, _ in rows] == ['{"n":1}', '{"n":2}']
    assert {len(reason) for _, reason in rows} == {storage.MAX_REASON}
    assert counts(owner) == {}


def test_results_are_kept_up_to_a_number(
    owner: Database, atoms: PostgresAtoms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "MAX_COLLECTED", 2)
    put(atoms, *[b'{"n":%d}' % n for n in range(3)])
    ids = [each.id for each in take(atoms)]

    assert atoms.collect(QUEUE, 1, ids, NOW) == 3
    assert atoms.collect(QUEUE, 1, ids, NOW) == 0

    rows = owner.rows("SELECT body FROM collected_atoms ORDER BY id")
    assert [body for (body,) in rows] == ['{"n":1}', '{"n":2}']


def test_nothing_comes_into_what_is_not_there(atoms: PostgresAtoms) -> None:
    assert not atoms.put(1, "gone", 1, READ, [(b"{}", NOW)], NOW)
    assert not atoms.put(1, "w", 2, READ, [(b"{}", NOW)], NOW)
    assert not atoms.put(2, "w", 1, READ, [(b"{}", NOW)], NOW)  # another tenant's
    assert atoms.in_force(2, "w") is None
    assert atoms.due() is None


def test_how_much_waits_is_known_of_each_tenant(atoms: PostgresAtoms) -> None:
    put(atoms, b"{}", b"{}")
    put(atoms, b'{"a":1}', queue=a_queue(2, "v"))

    assert atoms.held(1) == (2, 4)
    assert atoms.held(2) == (1, 7)
    assert {each.queue: each.ready for each in atoms.waiting(NOW)} == {
        QUEUE: 2,
        a_queue(2, "v"): 1,
    }
    assert atoms.due() == NOW


def test_atoms_of_a_version_that_is_gone_go(owner: Database, atoms: PostgresAtoms) -> None:
    put(atoms, b"{}")
    owner.rows("DELETE FROM workflows WHERE id = 'w'")

    assert atoms.document(QUEUE) is None
    atoms.drop(QUEUE)
    atoms.forget(NOW)

    assert owner.rows("SELECT 1 FROM atoms WHERE workflow = 'w'") == []
    assert owner.rows("SELECT 1 FROM atom_counts WHERE workflow = 'w'") == []


def test_instances_that_were_killed_are_forgotten_at_their_end(
    owner: Database, atoms: PostgresAtoms
) -> None:
    put(atoms, b"{}", b"{}", b"{}")
    killed, live, ended = (begin(atoms) for _ in range(3))
    assert killed and live and ended
    atoms.renew([live.instance], NOW + 11)
    atoms.end(QUEUE, ended.instance)
    atoms.forget(NOW + 11)

    assert owner.rows("SELECT id FROM workflow_instances") == [(live.instance,)]
    assert atoms.elsewhere([], NOW) == {QUEUE: 1}
    assert atoms.elsewhere([live.instance], NOW) == {}
    assert atoms.elsewhere([], NOW + 11) == {}


def begin(atoms: PostgresAtoms, most: int = 3, now: int = NOW) -> Begun | None:
    """Of the tenant so many may be, on all machines; each is one for 10 ms."""
    return atoms.begin(QUEUE, lambda places: sum(places.values()) < most, now, now + 10, UNTIL)


def test_an_instance_begins_with_an_atom_or_not_at_all(
    owner: Database, atoms: PostgresAtoms
) -> None:
    put(atoms, b"{}")
    first = begin(atoms)

    assert first is not None
    assert [each.body for each in first.atoms] == [b"{}"]
    assert take(atoms, instance=9) == []
    assert begin(atoms) is None
    assert owner.rows("SELECT id FROM workflow_instances") == [(first.instance,)]


def test_a_tenants_places_are_held_over_all_machines(dsn: str, atoms: PostgresAtoms) -> None:
    """However many machines begin at once; those of one that was killed are free at their end,
    before anybody tidies up."""
    put(atoms, *[b"{}"] * 20)

    def machine(_: int) -> int:
        own = Database(dsn, role=Role.DELIVERY, durable=False)
        begun = 0
        counted: list[bool] = []

        def is_free(places: Mapping[Queue, int]) -> bool:
            counted.append(sum(places.values()) < 3)
            return counted[-1]

        while all(counted):  # where others begin some at the moment nothing is counted
            begun += bool(PostgresAtoms(own).begin(QUEUE, is_free, NOW, NOW + 10, UNTIL))
        own.close()
        return begun

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(machine, range(4))) == 3
    assert begin(atoms, now=NOW + 9) is None
    assert begin(atoms, now=NOW + 10) is not None


def test_a_machine_that_holds_a_tenants_places_for_long_holds_up_nobody_else(
    owner: Database, atoms: PostgresAtoms
) -> None:
    """As one that vanished in that moment: until the server knows, the tenant has no more here."""
    put(atoms, b"{}")
    with owner.transaction():
        owner.rows("SELECT pg_advisory_xact_lock(%(places)s, hashint8(1))", {"places": _PLACES})
        assert begin(atoms) is None
    assert begin(atoms) is not None


def test_what_instances_ask_can_be_made_ready(owner: Database, atoms: PostgresAtoms) -> None:
    atoms.warm()

    assert counts(owner) == {}


def read_of(plan: Any, table: str) -> int:
    """How many rows of a table a plan that was run has read."""
    own = 0
    if plan.get("Relation Name") == table:
        removed = plan.get("Rows Removed by Filter", 0)
        own = round((plan["Actual Rows"] + removed) * plan["Actual Loops"])
    return own + sum(read_of(each, table) for each in plan.get("Plans", ()))


@pytest.mark.parametrize("statement", ["waiting", "due"])
def test_of_queues_that_are_empty_nothing_is_read(
    owner: Database, atoms: PostgresAtoms, statement: str
) -> None:
    """Whoever has had many has left counts of them, and holds up nobody's look."""
    put(atoms, b"{}", b"{}")
    put(atoms, b'{"a":1}', queue=a_queue(2, "v"))
    owner.rows(
        "INSERT INTO atom_counts SELECT 1, 'w', n, 0, 0, 0, 0 FROM generate_series(2, 5000) AS n;"
        "ANALYZE atom_counts; ANALYZE atoms"
    )
    sql = f"EXPLAIN (ANALYZE, FORMAT JSON) {queries('atoms')[statement]}"

    ((plan,),) = owner.rows(sql, {"now": NOW, "most": 9})

    assert read_of(plan[0]["Plan"], "atom_counts") <= 16
    assert len(atoms.waiting(NOW)) == 2
