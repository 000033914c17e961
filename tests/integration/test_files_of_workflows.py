"""Looks at stores, as they are stored: each file comes once, whoever is killed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import orjson
import pytest
from waiting import until
from workflow_builders import a_document, a_queue, a_workflow

from functions.steps import BEGUN_MS
from servioticy.domain.workflows import looking
from servioticy.domain.workflows.looking import Place
from servioticy.domain.workflows.model import CUT, LOOK
from servioticy.ports.atoms import Look, Seen
from servioticy.storage import atoms as storage
from servioticy.storage.atoms import PostgresAtoms
from servioticy.storage.database import Database
from servioticy.storage.queries import queries
from servioticy.storage.roles import Role

NOW, UNTIL, EVERY = 1_000_000, 1_090_000, 60_000
DOCUMENT = a_document(source={"files": {"store": "in", "format": "csv"}})
READ = a_workflow(source={"files": {"store": "in", "format": "csv"}})
TO_LOOK, TO_CUT = a_queue(step=LOOK), a_queue(step=CUT)


@pytest.fixture
def owner(dsn: str) -> Iterator[Database]:
    database = Database(dsn)
    database.rows(
        "INSERT INTO tenants (id, name) OVERRIDING SYSTEM VALUE VALUES (1, 'a');"
        "INSERT INTO workflows (id, tenant_id, created_at, updated_at) VALUES ('w', 1, 0, 0);"
        "INSERT INTO workflow_versions (workflow, version, tenant_id, content, created_at)"
        " VALUES ('w', 1, 1, %(text)s, 0);"
        "INSERT INTO atoms (tenant_id, workflow, version, step, visible_at, entered_at, body)"
        " VALUES (1, 'w', 1, -2, 0, 0, '{}')",
        {"text": orjson.dumps(DOCUMENT).decode()},
    )
    yield database
    database.close()


@pytest.fixture
def atoms(dsn: str, owner: Database) -> Iterator[PostgresAtoms]:
    database = Database(dsn, role=Role.DELIVERY)
    yield PostgresAtoms(database)
    database.close()


def looked(
    atoms: PostgresAtoms,
    *files: str,
    now: int = NOW,
    upto: str | None = None,
    trouble: str = "",
    is_sure: bool = True,
) -> int:
    """Take the look that waits, and see these: NAME or NAME=CONTENT."""
    (own,) = atoms.take(TO_LOOK, 1, 1, now, now + 90_000)
    pairs = [each.partition("=") for each in files]
    seen = [Seen(name, content or "1", 9) for name, _, content in pairs]
    look = Look(seen, Place.read(own.body), upto, trouble=trouble, is_sure=is_sure)
    return atoms.look(TO_LOOK, 1, own.id, look, EVERY, now)


def to_cut(atoms: PostgresAtoms) -> list[str]:
    """What waits to be cut, which is taken away."""
    found = atoms.take(TO_CUT, 9, 100, NOW + 10**9, NOW + 2 * 10**9)
    atoms.finish(TO_CUT, 9, [each.id for each in found], [], NOW)
    return [orjson.loads(each.body)["key"] for each in found]


def known(owner: Database) -> list[str]:
    return [key for (key,) in owner.rows("SELECT key FROM workflow_files ORDER BY key")]


def test_each_file_comes_once_and_again_where_it_is_another(atoms: PostgresAtoms) -> None:
    assert looked(atoms, "a", "b") == 2
    assert to_cut(atoms) == ["a", "b"]

    assert looked(atoms, "a", "b=2", "c", now=NOW + EVERY) == 2

    assert to_cut(atoms) == ["b", "c"]


def test_the_next_look_is_after_its_time(atoms: PostgresAtoms) -> None:
    looked(atoms)

    assert atoms.take(TO_LOOK, 2, 1, NOW + EVERY - 1, UNTIL) == []
    assert len(atoms.take(TO_LOOK, 2, 1, NOW + EVERY, UNTIL)) == 1


def test_a_long_list_goes_on_at_once(owner: Database, atoms: PostgresAtoms) -> None:
    """What is gone is forgotten by stretches: of others nothing is known."""
    for names in ("A", "a", "b", "c", "d"):
        owner.rows("INSERT INTO workflow_files VALUES ('w', 1, %(key)s, '1')", {"key": names})
    assert looked(atoms, "a", "b", upto="b") == 0
    assert known(owner) == ["a", "b", "c", "d"]

    assert looked(atoms, "d") == 0

    assert known(owner) == ["a", "b", "d"]


def test_a_file_that_went_and_came_back_comes_again(atoms: PostgresAtoms) -> None:
    assert looked(atoms, "a") == 1
    assert looked(atoms, now=NOW + EVERY) == 0
    assert looked(atoms, "a", now=NOW + 2 * EVERY) == 1


def test_a_folder_that_is_empty_all_at_once_forgets_nothing(
    owner: Database, atoms: PostgresAtoms
) -> None:
    """A mount that failed looks like this; when it is back no file comes twice."""
    assert looked(atoms, "a", is_sure=False) == 1
    assert looked(atoms, now=NOW + EVERY, is_sure=False) == 0

    assert known(owner) == ["a"]
    ((told,),) = owner.rows("SELECT trouble FROM workflow_looks")
    assert "empty" in told
    assert looked(atoms, "a", now=NOW + 2 * EVERY, is_sure=False) == 0
    assert looked(atoms, "b", now=NOW + 3 * EVERY, is_sure=False) == 1
    assert known(owner) == ["b"]


def test_whoever_lost_the_look_changes_nothing(owner: Database, atoms: PostgresAtoms) -> None:
    """Its time was over, and another looks."""
    (own,) = atoms.take(TO_LOOK, 1, 1, NOW, UNTIL)
    atoms.take(TO_LOOK, 2, 1, UNTIL, UNTIL + 1)

    assert atoms.look(TO_LOOK, 1, own.id, Look([Seen("a", "1", 9)], upto=None), EVERY, NOW) == 0

    assert known(owner) == []
    assert to_cut(atoms) == []


def test_whoever_is_killed_in_the_midst_has_seen_nothing(
    owner: Database, atoms: PostgresAtoms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known and what waits are one transaction."""

    def killed(*_: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PostgresAtoms, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            looked(atoms, "a")
    assert known(owner) == []

    assert looked(atoms, "a", now=UNTIL) == 1
    assert to_cut(atoms) == ["a"]


def test_trouble_is_told_and_forgets_nothing(owner: Database, atoms: PostgresAtoms) -> None:
    looked(atoms, "a")
    looked(atoms, now=NOW + EVERY, trouble="away")

    told = owner.rows("SELECT looked_at, trouble, is_full FROM workflow_looks")
    assert told == [(NOW + EVERY, "away", False)]
    assert known(owner) == ["a"]
    assert looked(atoms, "a", now=NOW + 2 * EVERY) == 0


def test_so_many_files_are_kept_in_mind_and_no_more(
    owner: Database, atoms: PostgresAtoms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is known is looked at as before; others wait until some have gone."""
    monkeypatch.setattr(storage, "MAX_FILES", 2)
    names: Sequence[str] = ("a", "b", "c")
    assert looked(atoms, *names) == 2
    assert known(owner) == ["a", "b"]
    assert owner.rows("SELECT is_full FROM workflow_looks") == [(True,)]

    assert looked(atoms, "a", "b=2", "c", now=NOW + EVERY) == 1
    assert looked(atoms, "b=2", "c", now=NOW + 2 * EVERY) == 1

    assert known(owner) == ["b", "c"]
    assert owner.rows("SELECT is_full FROM workflow_looks") == [(False,)]


def test_another_version_looks_for_itself(owner: Database, atoms: PostgresAtoms) -> None:
    owner.rows("UPDATE workflows SET version = 2 WHERE id = 'w'")
    looked(atoms, "a")

    assert atoms.take(TO_LOOK, 1, 1, NOW + 10**9, UNTIL) == []
    assert to_cut(atoms) == ["a"]


def test_a_workflow_that_is_gone_is_looked_for_no_more(
    owner: Database, atoms: PostgresAtoms
) -> None:
    (own,) = atoms.take(TO_LOOK, 1, 1, NOW, UNTIL)
    owner.rows("DELETE FROM workflows WHERE id = 'w'")

    atoms.look(TO_LOOK, 1, own.id, Look([Seen("a", "1", 9)], upto=None), EVERY, NOW)

    assert owner.rows("SELECT 1 FROM atoms WHERE step = -2") == []
    assert known(owner) == []


def test_a_tenant_is_known_by_its_public_id(owner: Database, atoms: PostgresAtoms) -> None:
    assert owner.rows("SELECT public_id FROM tenants") == [(atoms.public_id(1),)]
    assert atoms.public_id(2) == ""


def test_how_many_are_known_is_counted_as_they_come_and_go(
    owner: Database, atoms: PostgresAtoms
) -> None:
    """By looks, and not by counting them each time; one with other content is the same file."""

    def counted() -> int:
        told = owner.rows(
            "SELECT known, (SELECT count(*) FROM workflow_files) FROM workflow_looks"
        )
        ((noted, there),) = told
        assert noted == there
        return int(noted)

    for now, files in enumerate((["a", "b", "c"], ["a", "b=2", "c"], ["c", "d"], ["d"])):
        looked(atoms, *files, now=NOW + now * EVERY)
        assert counted() == len(files)


def test_a_tenants_workflows_keep_so_many_files_in_mind_together(
    dsn: str, owner: Database
) -> None:
    """What is known of another one counts, and so does what an operator has given."""
    database = Database(dsn, role=Role.DELIVERY)
    few = PostgresAtoms(database, most_files=3)
    owner.rows(
        "INSERT INTO workflows (id, tenant_id, created_at, updated_at) VALUES ('x', 1, 0, 0);"
        "INSERT INTO workflow_looks (workflow, tenant_id, looked_at, trouble, is_full, known)"
        " VALUES ('x', 1, 0, '', false, 1)"
    )

    assert looked(few, "a", "b", "c") == 2
    assert owner.rows("SELECT is_full FROM workflow_looks WHERE workflow = 'w'") == [(True,)]
    owner.rows("INSERT INTO quotas (tenant_id, name, most) VALUES (1, 'files-known', 4)")
    assert looked(few, "a", "b", "c", now=NOW + EVERY) == 1
    assert known(owner) == ["a", "b", "c"]
    database.close()


def test_a_long_list_without_anything_new_goes_on_with_the_next_look(
    owner: Database, atoms: PostgresAtoms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is behind its end is looked for first then."""
    monkeypatch.setattr(looking, "LOOK_PAGES", 2)
    for names in ("a", "b", "c", "d"):
        owner.rows("INSERT INTO workflow_files VALUES ('w', 1, %(key)s, '1')", {"key": names})

    assert looked(atoms, "a", upto="a") == 0
    assert looked(atoms, "b", upto="b") == 0
    assert atoms.take(TO_LOOK, 2, 1, NOW + EVERY - 1, UNTIL) == []
    assert looked(atoms, "c", upto="c", now=NOW + EVERY) == 0
    assert looked(atoms, "d", "e", now=NOW + EVERY) == 1
    (own,) = atoms.take(TO_LOOK, 1, 1, NOW + 2 * EVERY, NOW + 3 * EVERY)

    assert Place.read(own.body) == Place("e", 0, "e", back="")
    assert known(owner) == ["a", "b", "c", "d", "e"]


def test_the_end_of_a_folder_that_is_empty_is_looked_at_as_a_whole(
    owner: Database, atoms: PostgresAtoms
) -> None:
    """Its last files may have gone, or its mount: the whole list tells, nothing is forgotten."""
    assert looked(atoms, "a", "b", upto="b", is_sure=False) == 2
    owner.rows("INSERT INTO workflow_files VALUES ('w', 1, 'c', '1')")

    assert looked(atoms, is_sure=False) == 0

    assert known(owner) == ["a", "b", "c"]
    (own,) = atoms.take(TO_LOOK, 1, 1, NOW + EVERY, UNTIL + EVERY)
    assert Place.read(own.body) == Place()


def test_a_look_that_meets_a_new_version_is_the_last_of_the_old_one(
    dsn: str, owner: Database
) -> None:
    """Whichever is first waits for nobody, and the other one sees what it has done."""
    database = Database(dsn, role=Role.DELIVERY)
    own = PostgresAtoms(database)
    (atom,) = own.take(TO_LOOK, 1, 1, NOW, UNTIL)
    seen: list[int] = []

    def look() -> None:
        found = Look([Seen("a", "1", 9)], upto=None)
        seen.append(own.look(TO_LOOK, 1, atom.id, found, EVERY, NOW))
        database.close()

    looking_ = threading.Thread(target=look)
    other = Database(dsn)
    workflows = queries("workflows")
    with owner.transaction():
        owner.rows("UPDATE workflows SET version = 2 WHERE id = 'w'")
        owner.rows(workflows["hold_looks"], {"id": "w"})
        looking_.start()
        until(lambda: other.rows("SELECT 1 FROM pg_locks WHERE NOT granted") != [])
        owner.rows(workflows["look_no_more"], {"tenant": 1, "id": "w", "step": LOOK})
    looking_.join(60)

    assert seen == [0]
    assert owner.rows("SELECT step, version FROM atoms") == []
    assert known(owner) == []
    other.close()


def test_a_file_that_is_begun_goes_on_before_those_that_nobody_has_begun(
    atoms: PostgresAtoms,
) -> None:
    """Though they wait for longer: so few are copied at a time."""
    looked(atoms, "old", "new")
    old, new = atoms.take(TO_CUT, 1, 2, NOW, UNTIL)
    atoms.give_back(TO_CUT, 1, {old.id: NOW, new.id: NOW + BEGUN_MS}, counts=False)

    (found,) = atoms.take(TO_CUT, 1, 1, NOW, UNTIL)

    assert (orjson.loads(found.body)["key"], found.id) == ("new", new.id)
