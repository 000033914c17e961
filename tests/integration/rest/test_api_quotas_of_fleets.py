"""Quotas of documents and streams, where templates make many at once."""

from __future__ import annotations

from typing import Any

from api_builders import SIMPLE, Caller, Served
from quota_builders import given, told

from api.fleets.jobs import Jobs
from servioticy.storage.quotas import PostgresQuotas

__all__ = ["given"]


def test_a_template_makes_no_more_than_there_may_be(alice: Caller, given: PostgresQuotas) -> None:
    given.give("alice", "documents", 2)
    content = {"parameters": {}, "document": SIMPLE}
    id_ = alice.ask("POST", "/templates", json=content).get_json()["id"]

    three = alice.ask("POST", f"/templates/{id_}/objects", json=[{}, {}, {}])
    two = alice.ask("POST", f"/templates/{id_}/objects", json=[{}, {}])

    assert told(three)[0] == "documents"
    assert two.status_code == 202


TWO = {"streams": dict.fromkeys("ab", SIMPLE["streams"]["a"])}


def a_template(caller: Caller, document: Any = SIMPLE) -> str:
    content = {"parameters": {}, "document": document}
    return str(caller.ask("POST", "/templates", json=content).get_json()["id"])


def work_off(served: Served) -> None:
    jobs = Jobs(served.app.extensions["servioticy"])
    while jobs.turn():
        pass


def test_what_jobs_have_still_to_make_counts_already(
    served: Served, alice: Caller, given: PostgresQuotas
) -> None:
    """Else many of them that wait would pass the quota together."""
    given.give("alice", "documents", 3)
    template = a_template(alice)
    path = f"/templates/{template}/objects"
    assert alice.ask("POST", path, json=[{}, {}]).status_code == 202

    assert told(alice.ask("POST", path, json=[{}, {}]))[0] == "documents"
    assert alice.ask("POST", path, json=[{}]).status_code == 202
    assert told(alice.ask("POST", "/", json=SIMPLE))[0] == "documents"
    work_off(served)
    assert told(alice.ask("POST", "/", json=SIMPLE))[0] == "documents"
    rows = alice.ask("GET", "/quotas").get_json()["quotas"]
    assert {each["name"]: each.get("used") for each in rows}["documents"] == 3


def test_the_streams_of_a_fleet_count_before_they_are_made(
    served: Served, alice: Caller, given: PostgresQuotas
) -> None:
    given.give("alice", "streams", 4)
    template = a_template(alice, TWO)
    path = f"/templates/{template}/objects"

    assert told(alice.ask("POST", path, json=[{}, {}, {}]))[0] == "streams"
    assert alice.ask("POST", path, json=[{}, {}]).status_code == 202
    assert told(alice.ask("POST", "/", json=SIMPLE))[0] == "streams"
    work_off(served)
    assert told(alice.ask("POST", "/", json=SIMPLE))[0] == "streams"


def test_a_roll_out_makes_no_more_streams_than_there_may_be(
    served: Served, alice: Caller, given: PostgresQuotas
) -> None:
    given.give("alice", "streams", 3)
    template = a_template(alice)
    alice.ask("POST", f"/templates/{template}/objects", json=[{}, {}])
    two = {"parameters": {}, "document": TWO}

    assert told(alice.ask("PUT", f"/templates/{template}", json=two))[0] == "streams"
    work_off(served)
    assert told(alice.ask("PUT", f"/templates/{template}", json=two))[0] == "streams"
    given.give("alice", "streams", 4)
    served.app.extensions["servioticy"].quotas._known.clear()
    assert alice.ask("PUT", f"/templates/{template}", json=two).status_code == 202
    assert told(alice.ask("POST", "/", json=SIMPLE))[0] == "streams"
    work_off(served)
    assert told(alice.ask("POST", "/", json=SIMPLE))[0] == "streams"


def test_a_version_with_more_streams_is_no_way_around(
    served: Served, alice: Caller, given: PostgresQuotas
) -> None:
    so = alice.create(TWO)
    assert alice.ask("PUT", f"/{so}", json=SIMPLE).status_code == 200
    given.give("alice", "streams", 1)
    served.app.extensions["servioticy"].quotas._known.clear()

    assert told(alice.ask("POST", f"/{so}/versions/1/activate"))[0] == "streams"
