"""Operators: pushed, listed, granted, removed; and what the pipeline finds of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from api_builders import NOW, Caller, Served
from fleet_builders import post, work
from operator_folders import write
from werkzeug.test import TestResponse

from api.app import create_app
from api.resources import operators
from operators import archives
from operators.errors import NotAnOperator
from operators.line import Running
from operators.registry import Registry
from operators.shelf import Shelf
from sandbox.text import argument_names
from servioticy.domain.evaluators.programs import HEAD, STATE, Head
from servioticy.ports.effects import Activate
from servioticy.ports.programs import Program
from servioticy.settings import Settings
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.storage.programs import PostgresPrograms
from servioticy.storage.quotas import PostgresQuotas


@pytest.fixture
def registry(served: Served) -> Registry:
    return Registry(PostgresPrograms(served.platform.database))


def archive(tmp_path: Path, main: str = "x", **said: Any) -> bytes:
    """Return an archive of an operator that is called `tried`."""
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    return archives.pack(write(folder, main, **said))


def push(caller: Caller, content: bytes, name: str = "tried") -> TestResponse:
    """Push a program."""
    return caller.ask("PUT", f"/operators/{name}", data=content)


def test_each_push_is_a_version_and_the_same_files_are_the_same(
    alice: Caller, tmp_path: Path
) -> None:
    """So a script may push again and again."""
    first, second = archive(tmp_path, "1"), archive(tmp_path, "2", state=True)
    answers = [push(alice, each) for each in (first, first, second, first)]

    assert [each.status_code for each in answers] == [201, 200, 201, 201]
    assert [each.get_json()["version"] for each in answers] == [1, 1, 2, 3]
    assert answers[2].get_json()["manifest"]["state"] is True
    listed = alice.ask("GET", "/operators").get_json()["operators"]
    assert [(each["name"], each["version"]) for each in listed] == [
        ("tried", 3),
        ("tried", 2),
        ("tried", 1),
    ]


def test_no_number_is_given_twice(alice: Caller, tmp_path: Path) -> None:
    """A document that names a version that is gone does not come to compute by another one."""
    push(alice, archive(tmp_path, "1"))
    push(alice, archive(tmp_path, "2"))
    assert alice.ask("DELETE", "/operators/tried?version=2").status_code == 204
    assert alice.ask("GET", "/operators/tried/2").status_code == 404
    assert push(alice, archive(tmp_path, "3")).get_json()["version"] == 3
    assert alice.ask("DELETE", "/operators/tried").status_code == 204
    assert alice.ask("DELETE", "/operators/tried").status_code == 404
    assert push(alice, archive(tmp_path, "4")).get_json()["version"] == 4


def test_another_tenant_sees_nothing_of_it(alice: Caller, bob: Caller, tmp_path: Path) -> None:
    """Neither that it is there, nor how it runs."""
    push(alice, archive(tmp_path))

    assert bob.ask("GET", "/operators").get_json()["operators"] == []
    assert bob.ask("GET", "/operators/tried/1").status_code == 404
    assert bob.ask("DELETE", "/operators/tried").status_code == 404
    assert push(bob, archive(tmp_path)).get_json()["version"] == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"no archive", "no archive of tar and gzip"), (b"", "No data")],
)
def test_what_is_no_archive_is_refused(alice: Caller, content: bytes, reason: str) -> None:
    """With the reason."""
    answer = push(alice, content)

    assert answer.status_code == 400
    assert reason in answer.text


def test_a_bad_manifest_is_refused_with_its_place(alice: Caller, tmp_path: Path) -> None:
    """And one of another name than the path's."""
    assert "limits.memory" in push(alice, archive(tmp_path, limits={"memory": "1"})).text
    assert "it is other" in push(alice, archive(tmp_path, name="other")).text
    assert alice.ask("GET", "/operators").get_json()["operators"] == []


def test_versions_are_a_quota_and_names_are_bounded(
    alice: Caller, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At their borders."""
    PostgresQuotas(served.platform.database).give("alice", "operators", 2)
    monkeypatch.setattr(operators, "MAX_NAMES", 1)
    assert push(alice, archive(tmp_path, "1")).status_code == 201
    assert push(alice, archive(tmp_path, name="other"), "other").status_code == 409
    assert push(alice, archive(tmp_path, "2")).status_code == 201
    assert push(alice, archive(tmp_path, "3")).status_code == 429
    assert alice.ask("DELETE", "/operators/tried?version=1").status_code == 204
    assert push(alice, archive(tmp_path, "3")).status_code == 201


def test_strangers_push_only_where_they_were_allowed_and_can_be_enclosed(
    alice: Caller, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a quota, which of strangers nobody has, and by all layers."""
    app = create_app(served.platform.ports, Settings(), lambda: NOW, argument_names)
    stranger = Caller(app.test_client(), alice.token)
    monkeypatch.setattr(operators, "_why_not", lambda: "seccomp: it is off")
    assert push(stranger, archive(tmp_path)).status_code == 403
    PostgresQuotas(served.platform.database).give("alice", "operators", 5)
    app = create_app(served.platform.ports, Settings(), lambda: NOW, argument_names)
    allowed = Caller(app.test_client(), alice.token)
    answer = push(allowed, archive(tmp_path))
    assert (answer.status_code, "seccomp: it is off" in answer.text) == (409, True)
    monkeypatch.setattr(operators, "_why_not", lambda: "")
    assert push(allowed, archive(tmp_path)).status_code == 201
    networked = push(allowed, archive(tmp_path, "2", network=True))
    assert (networked.status_code, "network: " in networked.text) == (403, True)


def test_who_is_granted_a_program_finds_it_by_its_owners_name(
    alice: Caller, bob: Caller, registry: Registry, served: Served, tmp_path: Path
) -> None:
    """Until the grant ends; and nobody else does."""
    push(alice, archive(tmp_path, batch={"max": 7}))
    own = bob.ask("GET", "/grants").get_json()["tenant"]
    ids = [
        served.platform.database.rows("SELECT id FROM tenants WHERE name = %(n)s", {"n": name})
        for name in ("alice", "bob")
    ]
    (((hers,),), ((his,),)) = ids
    mine, granted = Program(hers, "tried", 1), Program(his, "alice/tried", 1, hers)
    asked = [granted, mine, Program(his, "tried", 1), Program(hers, "tried", 2)]

    assert set(registry.manifests(asked)) == {mine}
    assert alice.ask("PUT", f"/operators/tried/grants/{own}").status_code == 204
    odd = [Program(his, "a\0/tried", 1, hers), Program(his, "", -1)]
    odd += [Program(his, "alice/tried", 1, number) for number in (None, his, 2**40)]
    found = registry.manifests([*asked, *odd])
    assert set(found) == {mine, granted}, "whose it is goes by number"
    assert registry.archive(granted) is not None
    assert found[granted].batch == 7
    (given,) = alice.ask("GET", "/operators").get_json()["grants"]
    assert given == {"name": "tried", "tenant": own, "tenantName": "bob"}
    assert alice.ask("PUT", "/operators/tried/grants/nobody").status_code == 404
    assert alice.ask("DELETE", f"/operators/tried/grants/{own}").status_code == 204
    assert set(registry.manifests(asked)) == {mine}


def test_the_shelf_has_what_was_pushed(
    alice: Caller, registry: Registry, served: Served, tmp_path: Path
) -> None:
    """Unpacked once, looked at each time, unpacked anew where it is no longer the same."""
    push(alice, archive(tmp_path, "print(1)"))
    ((tenant,),) = served.platform.database.rows("SELECT id FROM tenants WHERE name = 'alice'")
    program = Program(tenant, "tried", 1)
    shelf = Shelf(tmp_path / "shelf", registry)
    described, folder = shelf.folder(program)

    assert described.name == "tried"
    assert (folder / "main.py").read_text() == "print(1)"
    assert shelf.folder(program)[1] == folder
    (folder / "main.py").chmod(0o644)
    (folder / "main.py").write_text("print(2)")
    assert (shelf.folder(program)[1] / "main.py").read_text() == "print(1)"
    with pytest.raises(NotAnOperator, match="there is no operator tried of version 2"):
        shelf.folder(Program(tenant, "tried", 2))
    shelf.close()


def test_the_shelf_is_bounded_and_leaves_what_is_held(
    alice: Caller, registry: Registry, served: Served, tmp_path: Path
) -> None:
    """By another process, too."""
    for main in "abc":
        push(alice, archive(tmp_path, main))
    ((tenant,),) = served.platform.database.rows("SELECT id FROM tenants WHERE name = 'alice'")
    programs = [Program(tenant, "tried", each) for each in (1, 2, 3)]
    ours, theirs = (Shelf(tmp_path / "shelf", registry, most_bytes=1) for _ in range(2))
    held = theirs.folder(programs[0])[1]
    first = ours.folder(programs[1])[1]
    ours.close()
    last = ours.folder(programs[2])[1]

    assert held.is_dir()
    assert last.is_dir()
    assert not first.exists()


def test_how_a_program_runs_is_told_to_its_tenant(
    alice: Caller, registry: Registry, served: Served, tmp_path: Path
) -> None:
    """With the end of what it printed; what is no text in the store's sense is a question mark."""
    push(alice, archive(tmp_path))
    ((tenant,),) = served.platform.database.rows("SELECT id FROM tenants WHERE name = 'alice'")
    program = Program(tenant, "tried", 1)
    printed = b"x" * 5000 + b"\0\xff\xed\xa0\x80end"
    for restarts in (1, 2):
        registry.tell("here/0", [Running(program, "idle", restarts, "why\0", printed, 5)])
    registry.tell("here/1", [Running(program, "serving", 0, "", b"", 6)])
    registry.tell("here/1", [])

    told = alice.ask("GET", "/operators/tried/1").get_json()
    assert [(each["node"], each["state"], each["restarts"]) for each in told["runs"]] == [
        ("here/0", "idle", 2),
        ("here/1", "serving", 0),
    ]
    assert told["runs"][0]["problem"] == "why?"
    assert told["runs"][0]["printed"].endswith("end")
    assert len(told["runs"][0]["printed"]) == 4096
    (listed,) = alice.ask("GET", "/operators").get_json()["operators"]
    assert listed["processes"] == {"idle": 1, "serving": 1}


def test_a_list_comes_in_pages(
    alice: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each version once."""
    monkeypatch.setattr(operators, "PAGE_ROWS", 2)
    for name, main in (("tried", "1"), ("tried", "2"), ("other", "1")):
        push(alice, archive(tmp_path, main, name=name), name)
    found, after = [], ""
    while after is not None:
        page = alice.ask("GET", f"/operators?after={after}").get_json()
        found += [(each["name"], each["version"]) for each in page["operators"]]
        after = page.get("next")

    assert found == [("other", 1), ("tried", 2), ("tried", 1)]


def test_eight_mebibytes_are_taken_and_more_are_not(alice: Caller) -> None:
    """Though other bodies may have much less here."""
    assert push(alice, bytes(archives.MAX_ARCHIVE_BYTES)).status_code == 400
    assert push(alice, bytes(archives.MAX_ARCHIVE_BYTES + 1)).status_code == 413
    assert json.loads(push(alice, bytes(30_000)).text)


def document(name: str, version: int = 1, **more: Any) -> dict[str, Any]:
    """Return one with a stream that this program computes."""
    computed = {
        "channels": {"x": {"type": "number"}},
        "operator": {"name": name, "version": version},
    }
    streams = {"a": {"channels": {"x": {"type": "number"}}}, "b": computed}
    return {"name": "counted", "streams": streams, **more}


def test_a_document_names_a_version_that_is_there(alice: Caller, tmp_path: Path) -> None:
    """What nobody has pushed is told with its place; so is another version."""
    assert push(alice, archive(tmp_path)).status_code == 201
    assert alice.ask("POST", "/", json=document("tried")).status_code == 201
    for name, version in (("tried", 2), ("other", 1), ("nobody/tried", 1)):
        answer = alice.ask("POST", "/", json=document(name, version))
        assert answer.status_code == 400, answer.text
        (told,) = answer.get_json()["errors"]
        assert (told["code"], told["pointer"]) == ("unknown-operator", "/streams/b/operator")


def test_whom_a_document_means_stays_though_another_is_given_the_name(
    alice: Caller, bob: Caller, served: Served, tmp_path: Path
) -> None:
    """Who has the name then is a stranger, whatever it pushes and grants."""
    database = served.platform.database
    own = bob.ask("GET", "/grants").get_json()["tenant"]
    push(alice, archive(tmp_path))
    assert alice.ask("PUT", f"/operators/tried/grants/{own}").status_code == 204
    made = bob.ask("POST", "/", json=document("alice/tried"))
    assert made.status_code == 201
    id_ = made.get_json()["id"]

    def meant(version: int) -> list[Any]:
        named = {"id": id_, "version": version}
        return database.rows(
            "SELECT operator_owners FROM definitions"
            " WHERE service_object = %(id)s AND version = %(version)s",
            named,
        )

    ((first,),) = database.rows("SELECT id FROM tenants WHERE name = 'alice'")
    assert meant(1) == [({"alice": first},)]
    database.rows("UPDATE tenants SET name = 'gone', deleted_at = now() WHERE name = 'alice'")
    stranger = served.tenant("alice")
    push(stranger, archive(tmp_path))
    assert stranger.ask("PUT", f"/operators/tried/grants/{own}").status_code == 204

    changed = document("alice/tried", public="true")
    for path in (f"/{id_}", f"/{id_}?detach=true"):
        refused = bob.ask("PUT", path, json=changed)
        assert refused.status_code == 400
        (told,) = refused.get_json()["errors"]
        assert (told["code"], told["pointer"]) == ("unknown-operator", "/streams/b/operator")
        assert "a tenant that has this name no more" in refused.text
    plain = {"streams": {"a": {"channels": {"x": {"type": "number"}}}}}
    assert bob.ask("PUT", f"/{id_}", json=plain).status_code == 200
    assert bob.ask("POST", f"/{id_}/versions/1/activate").status_code == 400
    anew = bob.ask("PUT", f"/{id_}", json=changed)
    assert anew.status_code == 200, "it is said anew whom it means"
    ((second,),) = database.rows("SELECT id FROM tenants WHERE name = 'alice'")
    assert meant(3) == [({"alice": second},)]
    assert meant(1) == [({"alice": first},)]
    store = PostgresPartitionStore(database, argument_names)
    change = Activate(id_, 1, 2**40)
    assert store.changed([change])[id_].operator_owners == {"alice": first}


def test_who_follows_goes_on_to_mean_the_same(
    alice: Caller, bob: Caller, served: Served, tmp_path: Path
) -> None:
    """Dynamic groups and templates: nobody looks at names then."""
    database = served.platform.database
    push(alice, archive(tmp_path))
    own = bob.ask("GET", "/grants").get_json()["tenant"]
    assert alice.ask("PUT", f"/operators/tried/grants/{own}").status_code == 204
    reader = document(
        "alice/tried", groups={"all": {"where": {"customFields.room": "x"}, "stream": "a"}}
    )
    group = post(bob, "/", reader, 201)["id"]
    made_of = {"name": "made", "parameters": {}, "document": document("alice/tried")}
    template = post(bob, "/templates", made_of, 201)["id"]
    post(bob, f"/templates/{template}/objects", [{}])
    work(served)
    ((first,),) = database.rows("SELECT id FROM tenants WHERE name = 'alice'")
    database.rows("UPDATE tenants SET name = 'gone' WHERE id = %(id)s", {"id": first})
    push(served.tenant("alice"), archive(tmp_path))
    plain = {"streams": {"a": {"channels": {"x": {"type": "number"}}}}}
    post(bob, "/", {**plain, "customFields": {"room": "x"}}, 201)
    other = {**made_of, "document": document("alice/tried", public="true")}
    assert bob.ask("PUT", f"/templates/{template}", json=other).status_code == 202
    work(served)

    rows = database.rows(
        "SELECT service_object = %(group)s, version, operator_owners FROM definitions"
        " WHERE operator_owners IS NOT NULL ORDER BY 1, 2",
        {"group": group},
    )
    meant = {"alice": first}
    assert rows == [(False, 1, meant), (False, 2, meant), (True, 1, meant), (True, 2, meant)]


def test_status_tells_what_waits_for_a_program_and_what_it_keeps(
    alice: Caller, bob: Caller, served: Served, tmp_path: Path
) -> None:
    """To its tenant alone, though the stream is public."""
    push(alice, archive(tmp_path))
    id_ = alice.ask("POST", "/", json=document("tried", public="true")).get_json()["id"]
    path = f"/{id_}/streams/b/status"
    nothing = {"waiting": 0, "bytes": 0, "state": None}
    assert alice.ask("GET", path).get_json()["operator"] == nothing
    stream = served.platform.stream(id_, "b")
    head = Head(1, first=5, next=8, size=70, states=3, program="tried", version=1)
    for key, value in ((HEAD, msgspec.msgpack.encode(head)), (STATE, b'{"n":[1,null]}')):
        served.platform.database.rows(
            "INSERT INTO kept_entries (log_partition, tenant_id, stream_id, key, value)"
            " VALUES (0, %(tenant)s, %(stream_id)s, %(key)s, %(value)s)",
            stream._asdict() | {"key": key, "value": value},
        )

    assert alice.ask("GET", path).get_json()["operator"] == {
        "waiting": 3,
        "bytes": 70,
        "answeredBy": {"name": "tried", "version": 1},
        "state": {"n": [1, None]},
    }
    assert bob.ask("GET", path).status_code == 401
    assert "operator" not in alice.ask("GET", f"/{id_}/streams/a/status").get_json()
