"""Workflows by HTTP: documents, versions, atoms that come and what is told of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from api_builders import SIMPLE, Caller, Served
from fleet_builders import get, post
from workflow_builders import CODE, a_document, a_queue

from api.app import SERVICES
from api.resources import workflows
from servioticy.domain.quotas import ATOM_BYTES, ATOMS
from servioticy.domain.workflows.model import CUT, LOOK
from servioticy.ports.atoms import Look, Product, Seen, Work
from servioticy.settings import changed
from servioticy.storage.atoms import PostgresAtoms

NOW_MS = 1_500_000_000_000


def made(caller: Caller, document: Any = None) -> str:
    id_: str = post(caller, "/workflows", document or a_document(), 201)["id"]
    return id_


def queues(served: Served) -> PostgresAtoms:
    return PostgresAtoms(served.platform.database.delivery)


def tenant_of(served: Served, caller: Caller) -> int:
    address = served.platform.ports.addresses.address(caller.token, None, None)
    assert address is not None
    return address.caller


def send(caller: Caller, workflow: str, *atoms: Any, status: int = 202) -> Any:
    return post(caller, f"/workflows/{workflow}/atoms", {"atoms": list(atoms)}, status)


def test_a_workflow_is_made_read_replaced_and_deleted(alice: Caller) -> None:
    id_ = made(alice)
    path = f"/workflows/{id_}"

    before = get(alice, path)
    changed = post(alice, path, a_document("clean", "sort"), 200, "PUT")
    after = get(alice, path)

    assert (before["version"], before["active"], before["document"]) == (1, True, a_document())
    assert changed == {"id": id_, "version": 2}
    assert after["document"] == a_document("clean", "sort")
    assert get(alice, f"{path}/versions/1")["document"] == a_document()
    told = get(alice, f"{path}/versions")["versions"]
    assert [(each["version"], each["active"]) for each in told] == [(1, False), (2, True)]
    assert [each["id"] for each in get(alice, "/workflows")["data"]] == [id_]
    assert alice.ask("DELETE", path).status_code == 204
    assert alice.ask("GET", path).status_code == 404
    assert get(alice, "/workflows")["data"] == []


def test_a_workflow_is_its_tenants_alone(alice: Caller, bob: Caller) -> None:
    path = f"/workflows/{made(alice)}"

    for method, rest in (
        ("GET", ""),
        ("GET", "/versions"),
        ("GET", "/versions/1"),
        ("GET", "/picture.svg"),
        ("GET", "/status"),
        ("GET", "/results"),
        ("GET", "/dead-letters"),
        ("DELETE", ""),
    ):
        assert bob.ask(method, path + rest).status_code == 404, (method, rest)
    for method, rest, body in (
        ("PUT", "", a_document()),
        ("POST", "/atoms", {"atoms": [{}]}),
        ("POST", "/dead-letters/redrive", {}),
    ):
        answer = bob.ask(method, path + rest, data=orjson.dumps(body))
        assert answer.status_code == 404, (method, rest)
    assert get(alice, path)["version"] == 1


def test_whoever_changes_an_older_version_is_told(alice: Caller) -> None:
    path = f"/workflows/{made(alice)}"
    post(alice, path, a_document(), 200, "PUT")

    answer = alice.ask("PUT", path, data=orjson.dumps(a_document()), headers={"If-Match": '"1"'})

    assert answer.status_code == 412
    assert get(alice, path)["version"] == 2


def test_what_is_wrong_is_told_with_its_place(alice: Caller) -> None:
    told = post(alice, "/workflows", a_document(links=[["source", "x"]]), 400)

    assert told["pointer"] == "/links/0/1"
    assert told["code"] == "bad-link"


def test_code_that_does_not_compile_is_told_with_its_procedure(
    alice: Caller, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = served.app.extensions[SERVICES]
    problem = "procedure: line 1, column 3: Unexpected token"
    found = lambda _tenant, programs: [[problem] for _ in programs]  # noqa: E731
    object.__setattr__(services, "check_programs", found)

    told = post(alice, "/workflows", a_document("clean", "sort"), 400)

    assert told["pointer"] == "/procedures/clean/code"
    assert told["message"] == "procedure clean: line 1, column 3: Unexpected token"
    assert [each["pointer"] for each in told["errors"]] == [
        "/procedures/clean/code",
        "/procedures/sort/code",
    ]


def test_there_are_so_many_workflows_and_no_more(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflows, "MAX_WORKFLOWS", 2)
    for _ in range(2):
        made(alice)

    assert "There are 2 workflows" in post(alice, "/workflows", a_document(), 409)["message"]


def test_versions_go_when_there_are_many_unless_atoms_wait_for_them(
    alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workflows, "MAX_VERSIONS", 3)
    monkeypatch.setattr(workflows, "KEPT_VERSIONS", 1)
    id_ = made(alice)
    send(alice, id_, {"n": 1})

    for _ in range(4):
        post(alice, f"/workflows/{id_}", a_document(), 200, "PUT")

    told = get(alice, f"/workflows/{id_}/versions")["versions"]
    assert [each["version"] for each in told] == [1, 4, 5]


def test_atoms_wait_for_the_first_steps(alice: Caller, served: Served) -> None:
    id_ = made(alice)

    told = send(alice, id_, {"n": 1}, {"n": "\u00e9"})

    assert told == {"accepted": 2, "version": 1}
    queue = a_queue(tenant_of(served, alice), id_)
    atoms = queues(served).take(queue, 1, 10, NOW_MS, NOW_MS + 1)
    assert [orjson.loads(each.body) for each in atoms] == [{"n": 1}, {"n": "\u00e9"}]
    assert {each.entered_ms for each in atoms} == {NOW_MS}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/atoms"),
        ({"atoms": []}, "/atoms"),
        ({"atoms": {}}, "/atoms"),
        ({"atoms": [{}, 1]}, "/atoms/1"),
        ({"atoms": [{"a": "x" * 19_000}] * 1_001}, None),
        ({"atoms": [{}] * 1_001}, "/atoms"),
    ],
)
def test_what_is_no_batch_of_atoms_is_refused_and_none_of_it_comes(
    alice: Caller, served: Served, body: Any, pointer: str | None
) -> None:
    id_ = made(alice)

    answer = alice.ask("POST", f"/workflows/{id_}/atoms", data=orjson.dumps(body))

    assert answer.status_code == (400 if pointer else 413)
    if pointer:
        assert answer.get_json()["pointer"] == pointer
    assert queues(served).held(tenant_of(served, alice)) == (0, 0)


@pytest.mark.parametrize(("quota", "most"), [(ATOMS, 3), (ATOM_BYTES, 6)])
def test_queues_have_room_up_to_a_quota(
    alice: Caller, served: Served, quota: str, most: int
) -> None:
    """At its border: three atoms of two bytes, and not one more; another tenant has its own."""
    database = served.platform.database
    database.rows(
        "INSERT INTO quotas (tenant_id, name, most) SELECT id, %(quota)s, %(most)s FROM tenants"
        " WHERE name = 'alice'",
        {"quota": quota, "most": most},
    )
    id_ = made(alice)

    assert send(alice, id_, {}, {}, {}, {}, status=429)["quota"]["name"] == quota
    send(alice, id_, {}, {}, {})
    told = send(alice, id_, {}, status=429)

    assert told["quota"]["limit"] == most
    assert queues(served).held(tenant_of(served, alice)) == (3, 6)


def test_a_request_that_comes_again_comes_once(alice: Caller, served: Served) -> None:
    id_ = made(alice)
    for _ in range(2):
        answer = alice.ask(
            "POST",
            f"/workflows/{id_}/atoms",
            data=b'{"atoms":[{}]}',
            headers={"Idempotency-Key": "one"},
        )
        assert answer.status_code == 202

    assert queues(served).held(tenant_of(served, alice))[0] == 1


def test_atoms_that_came_before_stay_with_their_version(alice: Caller, served: Served) -> None:
    id_ = made(alice)
    send(alice, id_, {"n": 1})
    post(alice, f"/workflows/{id_}", a_document("other"), 200, "PUT")

    assert send(alice, id_, {"n": 2})["version"] == 2

    found = {each.queue.version: each.atoms for each in queues(served).waiting(NOW_MS)}
    assert found == {1: 1, 2: 1}


def test_the_status_tells_queues_instances_dead_letters_and_cost(
    alice: Caller, served: Served
) -> None:
    id_ = made(alice, a_document("clean", "sort"))
    send(alice, id_, {"n": 1}, {"n": 2}, {"n": 3})
    atoms, queue = queues(served), a_queue(tenant_of(served, alice), id_)
    begun = atoms.begin(queue, lambda _: True, NOW_MS, NOW_MS + 5, NOW_MS + 9)
    assert begun is not None
    instance, (one,) = begun
    two, _ = atoms.take(queue, instance, 2, NOW_MS, NOW_MS + 9)
    atoms.finish(queue, instance, [one.id], [Product(one.id, 1, 0, b'{"m":1}')], NOW_MS)
    atoms.bury(queue, instance, {two.id: "error: x"}, NOW_MS)
    atoms.note([Work(queue.tenant, id_, "clean", 1, 1, 2, 1, 3_600_000)])

    told = get(alice, f"/workflows/{id_}/status?from=0")

    assert (told["waiting"], told["deadLetters"], told["instances"]) == (2, 1, 1)
    clean, sort = told["steps"]["clean"], told["steps"]["sort"]
    assert (clean["waiting"], clean["held"], clean["oldestSince"]) == (1, 1, NOW_MS)
    assert (sort["waiting"], sort["waitingBytes"]) == (1, 7)
    assert clean["done"]["processorSeconds"] == 3.6
    assert clean["done"]["cost"] == pytest.approx(0.04 / 1000)
    assert told["cost"] == clean["done"]["cost"]
    drawn = alice.ask("GET", f"/workflows/{id_}/picture.svg")
    assert drawn.content_type.startswith("image/svg+xml")
    assert "1 waiting" in drawn.text


def test_dead_letters_are_told_and_wait_once_more(alice: Caller, served: Served) -> None:
    id_ = made(alice)
    send(alice, id_, {"n": 1}, {"n": 2})
    atoms, queue = queues(served), a_queue(tenant_of(served, alice), id_)
    one, two = atoms.take(queue, 5, 2, NOW_MS, NOW_MS + 9)
    atoms.bury(queue, 5, {one.id: "error: one"}, NOW_MS)
    atoms.bury(queue, 5, {two.id: "error: two"}, NOW_MS)
    path = f"/workflows/{id_}/dead-letters"

    told = get(alice, path)["data"]
    older = get(alice, f"{path}?before={told[0]['id']}")["data"]

    assert [(each["atom"], each["reason"]) for each in told] == [
        ({"n": 2}, "error: two"),
        ({"n": 1}, "error: one"),
    ]
    assert (told[0]["step"], told[0]["attempts"]) == ("clean", 1)
    assert older == told[1:]
    assert post(alice, f"{path}/redrive", {}) == {"redriven": 2}
    assert get(alice, path)["data"] == []
    again = atoms.take(queue, 6, 5, NOW_MS, NOW_MS + 9)
    assert [(each.body, each.attempts) for each in again] == [(b'{"n":1}', 1), (b'{"n":2}', 1)]


def test_results_are_told_the_newest_first(alice: Caller, served: Served) -> None:
    id_ = made(alice)
    send(alice, id_, {"n": 1}, {"n": 2})
    atoms, queue = queues(served), a_queue(tenant_of(served, alice), id_)
    ids = [each.id for each in atoms.take(queue, 5, 2, NOW_MS, NOW_MS + 9)]
    atoms.collect(queue, 5, ids, NOW_MS + 3)

    told = get(alice, f"/workflows/{id_}/results")["data"]

    assert [each["atom"] for each in told] == [{"n": 2}, {"n": 1}]
    assert (told[0]["enteredAt"], told[0]["collectedAt"]) == (NOW_MS, NOW_MS + 3)
    assert get(alice, f"/workflows/{id_}/results?limit=1")["data"] == told[:1]


def test_a_stream_brings_atoms_by_a_subscription_that_goes_with_it(alice: Caller) -> None:
    so = alice.create(SIMPLE)
    place = {"serviceObject": so, "stream": "a"}
    id_ = made(alice, a_document(source={"stream": place}))

    (about,) = get(alice, "/subscriptions")["subscriptions"]
    assert (about["callback"], about["destination"]) == ("workflow", id_)
    told = send(alice, id_, {}, status=400)
    assert "come from a stream" in told["message"]
    same = a_document("other", source={"stream": place})
    post(alice, f"/workflows/{id_}", same, 200, "PUT")
    assert [each["id"] for each in get(alice, "/subscriptions")["subscriptions"]] == [about["id"]]
    post(alice, f"/workflows/{id_}", a_document(), 200, "PUT")
    assert get(alice, "/subscriptions")["subscriptions"] == []
    post(alice, f"/workflows/{id_}", same, 200, "PUT")
    alice.ask("DELETE", f"/workflows/{id_}")
    assert get(alice, "/subscriptions")["subscriptions"] == []


def test_streams_have_to_be_there_and_sinks_simple_and_ones_own(
    alice: Caller, bob: Caller
) -> None:
    composite = {"channels": {"x": {"type": "number", "current-value": "{$a.channels.x} + 1"}}}
    document = {**SIMPLE, "public": True}
    document["streams"] = {**SIMPLE["streams"], "c": composite}
    so = alice.create(document)

    def told(caller: Caller, end: str, stream: str, status: int) -> Any:
        place = {"serviceObject": so, "stream": stream}
        return post(caller, "/workflows", a_document(**{end: {"stream": place}}), status)

    assert told(alice, "source", "gone", 404)["pointer"] == "/source/stream"
    assert told(alice, "sink", "c", 400)["pointer"] == "/sink/stream"
    assert told(bob, "sink", "a", 404)["pointer"] == "/sink/stream"
    told(bob, "source", "a", 201)  # it is public
    told(alice, "sink", "a", 201)
    told(alice, "source", "c", 201)


def from_files(**more: Any) -> Any:
    return a_document(source={"files": {"store": "in", "format": "csv", **more}})


@pytest.fixture
def with_stores(served: Served) -> Iterator[None]:
    """A store and a schema of each tenant's own, and those of somebody else."""
    services = served.app.extensions[SERVICES]
    before = services.settings
    told = {"in": "file:///srv/{tenant}", "theirs": "file:///srv?tenants=nobody"}
    server = "postgres://a:b@127.0.0.1/dw"
    places = {"dw": server + "/{tenant}", "theirs": server + "/plant?tenants=nobody"}
    chosen = changed(before, functions_stores=told, functions_databases=places)
    object.__setattr__(services, "settings", chosen)
    yield
    object.__setattr__(services, "settings", before)


def test_a_store_that_no_operator_has_made_is_refused(alice: Caller) -> None:
    told = post(alice, "/workflows", from_files(), 400)

    assert told["pointer"] == "/source/files/store"
    assert told["code"] == "no-choice"


@pytest.mark.usefixtures("with_stores")
def test_files_of_a_store_are_a_source(alice: Caller, served: Served) -> None:
    assert post(alice, "/workflows", from_files(store="theirs"), 400)["code"] == "no-choice"
    id_ = made(alice, from_files(prefix="a/"))
    tenant, asked = tenant_of(served, alice), queues(served)
    look = a_queue(tenant, id_, 1, LOOK)

    (own,) = asked.take(look, 1, 1, NOW_MS * 2, NOW_MS * 3)
    asked.look(look, 1, own.id, Look([Seen("a/b", "1", 5)], upto=None), 60_000, NOW_MS)
    told = get(alice, f"/workflows/{id_}/status")

    assert told["files"] == {"lookedAt": NOW_MS, "trouble": "", "known": 1, "tooMany": False}
    assert told["steps"]["source"]["waiting"] == told["waiting"] == 1
    assert b"csv of in" in alice.ask("GET", f"/workflows/{id_}/picture.svg").data
    answer = send(alice, id_, {}, status=400)
    assert answer["message"] == "The atoms of this workflow come from a stream or from files"
    (cut,) = asked.take(a_queue(tenant, id_, 1, CUT), 1, 1, NOW_MS * 2, NOW_MS * 3)
    asked.bury(a_queue(tenant, id_, 1, CUT), 1, {cut.id: "no file"}, NOW_MS)
    (dead,) = get(alice, f"/workflows/{id_}/dead-letters")["data"]
    assert (dead["step"], dead["reason"], dead["atom"]["key"]) == ("source", "no file", "a/b")


@pytest.mark.usefixtures("with_stores")
def test_a_table_is_a_sink_where_an_operator_lets_the_tenant_write(alice: Caller) -> None:
    for database in ("gone", "theirs"):
        sink = {"table": {"database": database, "table": "t"}}
        told = post(alice, "/workflows", a_document(sink=sink), 400)
        assert (told["pointer"], told["code"]) == ("/sink/table/database", "no-choice")
    id_ = made(alice, a_document(sink={"table": {"database": "dw", "table": "t", "key": ["a"]}}))

    assert b"table t of dw" in alice.ask("GET", f"/workflows/{id_}/picture.svg").data


@pytest.mark.usefixtures("with_stores")
def test_another_source_knows_none_of_its_files_yet(alice: Caller, served: Served) -> None:
    """The same store with another format does."""
    id_ = made(alice, from_files())
    tenant, asked = tenant_of(served, alice), queues(served)

    def looked(version: int) -> int:
        look = a_queue(tenant, id_, version, LOOK)
        (own,) = asked.take(look, 1, 1, NOW_MS * 2, NOW_MS * 3)
        return asked.look(look, 1, own.id, Look([Seen("b", "1", 5)], upto=None), 1, NOW_MS)

    assert looked(1) == 1
    post(alice, f"/workflows/{id_}", from_files(format="ndjson"), 200, "PUT")
    assert asked.take(a_queue(tenant, id_, 1, LOOK), 1, 1, NOW_MS * 2, NOW_MS * 3) == []
    assert looked(2) == 0
    post(alice, f"/workflows/{id_}", from_files(prefix="b"), 200, "PUT")
    assert looked(3) == 1
    post(alice, f"/workflows/{id_}", a_document(), 200, "PUT")
    assert "files" not in get(alice, f"/workflows/{id_}/status")
    assert asked.take(a_queue(tenant, id_, 3, LOOK), 1, 1, NOW_MS * 2, NOW_MS * 3) == []


def test_a_document_is_looked_at_and_its_cost_estimated_before_it_lives(
    served: Served, alice: Caller
) -> None:
    """By assumptions first, and for a new version by what was measured."""
    document = a_document(procedures={"clean": {"code": CODE, "memory": 128}})
    first = post(alice, "/workflows?dry-run=true", document, 200)["estimate"]
    assert first["steps"]["clean"]["measured"] is False
    assert first["steps"]["clean"]["gibibyteHours"] == pytest.approx(128 / 1024 * 1_000 / 3_600)
    assert get(alice, "/workflows")["data"] == []

    id_ = made(alice, document)
    work = Work(tenant_of(served, alice), id_, "clean", 1_000, 500, 0, 0, 2_000_000, 128_000)
    queues(served).note([work])
    again = post(alice, f"/workflows/{id_}?dry-run=true", document, 200, "PUT")["estimate"]

    assert again["steps"]["clean"]["measured"] is True
    assert again["steps"]["clean"]["processorSeconds"] == pytest.approx(2_000)
    assert again["steps"]["sink"]["atoms"] == 500_000
    assert get(alice, f"/workflows/{id_}")["version"] == 1
    wrong = post(alice, "/workflows?dry-run=true", a_document(sink={}), 400)
    assert wrong["pointer"] == "/sink"
    assert alice.ask("POST", "/workflows?dry-run=maybe", json=document).status_code == 400


def test_what_workflows_have_done_is_summed_up_with_its_cost(
    served: Served, alice: Caller, bob: Caller
) -> None:
    """By hour, workflow and step; of nobody else's."""
    id_, other = made(alice), made(bob)
    for caller, workflow in ((alice, id_), (bob, other)):
        own = tenant_of(served, caller)
        works = [
            Work(own, workflow, step, 10, 10, 1, 0, 3_600_000, 1_024 * 3_600)
            for step in ("clean", "sink")
        ]
        queues(served).note(works)
    now = served.platform.ports.statements("workflows").rows(
        "hours", id=id_, tenant=tenant_of(served, alice), since=0
    )
    assert len(now) == 2
    everything = "from=0&to=4000000000000000"

    (all_,) = get(alice, f"/usage/workflows?{everything}")["data"]
    steps = get(alice, f"/usage/workflows?{everything}&by=step")["data"]
    (workflow,) = get(alice, f"/usage/workflows?{everything}&by=workflow")["data"]
    (hour,) = get(alice, f"/usage/workflows?{everything}&by=hour")["data"]

    assert (all_["atoms"], all_["failed"], all_["processorSeconds"]) == (20, 2, 7.2)
    assert all_["gibibyteHours"] == pytest.approx(0.002)
    assert all_["cost"] == pytest.approx(0.002 * 0.04 + 0.002 * 0.0045)
    assert [(each["workflow"], each["step"]) for each in steps] == [(id_, "clean"), (id_, "sink")]
    assert workflow["workflow"] == id_
    assert hour["hour"] % 3_600_000 == 0


def test_a_program_that_nobody_has_pushed_is_no_procedure(alice: Caller) -> None:
    document = a_document(procedures={"clean": {"operator": {"name": "gone", "version": 1}}})

    told = post(alice, "/workflows", document, 400)

    assert told["pointer"] == "/procedures/clean/operator"
    assert "no version 1 of a program gone" in told["message"]
