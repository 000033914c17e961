"""What is left of what was deleted: nothing that anybody wrote, and in time nothing at all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served
from contract_world import World, a_world
from departing import compute

from api.app import SERVICES
from api.background.forgetting import left_behind
from servioticy.storage import change_store
from servioticy.storage.quotas import PostgresQuotas

SECRET = "kitchen-of-mallory"
KEPT = {
    "audit": "who has deleted it",
    "usage_hours": "what was used is to be paid",
    "ended_grants": "what was used by them is to be paid",
    "service_objects": "the id, until no record of the log can name it",
    "idempotency": "sealed, for a day",
    "jobs": "ids of what failed, of the last hundred",
    "claims": "which device has used up a use of its code",
}
"""Where the id of a deleted Service Object may still stand, and why."""


@pytest.fixture
def world(served: Served) -> World:
    made = a_world(served)
    so, fields = made.names["so"], {"owner": SECRET}
    assert made.tenant.ask("PUT", f"/{so}", json={"customFields": fields}).status_code == 200
    codes = {"uses": 2, "expiresIn": 60}
    made.tenant.ask("POST", f"/{so}/claim-codes", json=codes)
    return made


def holding(served: Served, text: str) -> set[str]:
    """Tables in any row of which the text stands."""
    database = served.platform.database
    tables = database.rows(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind IN ('r', 'p', 'v')"
    )
    looked = "SELECT EXISTS (SELECT FROM {0} WHERE strpos({0}::text, %(text)s) > 0)"
    return {name for (name,) in tables if database.rows(looked.format(name), {"text": text})[0][0]}


def forget(served: Served, days: int = 0) -> None:
    services = served.app.extensions[SERVICES]
    then = services.now() + days * 86_400_000
    later: Any = SimpleNamespace(ports=services.ports, now=lambda: then)
    old = left_behind(later)
    while old.turn():
        pass


def test_what_was_written_is_gone_at_once(served: Served, world: World) -> None:
    """For the API the object is gone: its customFields and what it was listed by are."""
    assert {"service_objects", "listings"} <= holding(served, SECRET)

    assert world.tenant.ask("DELETE", f"/{world.names['so']}").status_code in (200, 204)

    assert holding(served, SECRET) == set()


def test_all_of_it_goes_but_what_is_named(served: Served, world: World) -> None:
    """Whichever tables there are: a walk through the catalogue finds those that come."""
    so = world.names["so"]
    assert len(holding(served, so)) > 12
    world.tenant.ask("DELETE", f"/{so}")

    compute(served)
    forget(served)

    assert holding(served, so) <= KEPT.keys()
    forget(served, days=8)
    assert "service_objects" not in holding(served, so)


def test_what_lives_stays(served: Served, world: World, alice: Caller) -> None:
    alive = alice.create({**SIMPLE, "customFields": {"owner": "alice"}})
    before = holding(served, alive)

    forget(served, days=400)

    assert holding(served, alive) == before
    assert alice.ask("GET", f"/{alive}").status_code == 200


def versions(caller: Caller, so: str) -> list[int]:
    told = caller.ask("GET", f"/{so}/versions").get_json()["versions"]
    return [each["version"] for each in told]


def put(caller: Caller, so: str, number: int) -> None:
    body = {**SIMPLE, "description": str(number)}
    assert caller.ask("PUT", f"/{so}", json=body).status_code == 200


def pass_all(served: Served) -> None:
    """What the pipeline does when it comes to the last change."""
    served.platform.database.rows(
        "UPDATE service_objects SET active_version = version, active_change ="
        " (SELECT last_value FROM pending_changes_id_seq)"
    )


def test_versions_are_bounded_and_the_one_in_force_stays(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_store, "MAX_VERSIONS", 3)
    so = alice.create(SIMPLE)
    for number in range(4):
        put(alice, so, number)
    assert versions(alice, so) == [1, 2, 3, 4, 5]  # the log has to say all of them yet

    pass_all(served)
    put(alice, so, 5)
    assert versions(alice, so) == [4, 5, 6]

    pass_all(served)
    assert alice.ask("POST", f"/{so}/versions/4/activate").status_code == 200
    for number in range(6, 9):
        put(alice, so, number)
    assert 4 in versions(alice, so)  # named by a change that the log has to say yet


def test_the_bytes_of_documents_are_counted(served: Served, alice: Caller) -> None:
    def used() -> int:
        told = alice.ask("GET", "/quotas").get_json()["quotas"]
        return next(int(each["used"]) for each in told if each["name"] == "document-bytes")

    so = alice.create(SIMPLE)
    before = used()
    put(alice, so, 1)
    assert before < used() < 3 * before

    template = {"parameters": {}, "document": SIMPLE}
    id_ = alice.ask("POST", "/templates", json=template).get_json()["id"]
    before = used()
    changed = {**template, "document": {**SIMPLE, "description": "1"}}
    assert alice.ask("PUT", f"/templates/{id_}", json=changed).status_code == 202
    assert used() > before

    PostgresQuotas(served.platform.database).give("alice", "document-bytes", used())
    served.app.extensions[SERVICES].quotas._known.clear()
    changed["document"]["description"] = "2"
    for method, path, body in (
        ("PUT", f"/{so}", {**SIMPLE, "description": "2"}),
        ("POST", "/templates", template),
        ("PUT", f"/templates/{id_}", changed),
    ):
        answer = alice.ask(method, path, json=body)
        assert (answer.status_code, answer.get_json()["quota"]["name"]) == (429, "document-bytes")
    assert alice.ask("POST", f"/templates/{id_}/versions/1/activate").status_code == 202
