"""Fleets: Service Objects are made from a template and follow it."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from api_builders import SIMPLE, Caller, Served
from fleet_builders import DOCUMENT, TEMPLATE, a_fleet, a_template, get, post, work

from api.app import SERVICES
from api.background.worker import worker
from servioticy.domain.records import DefinitionRecord
from servioticy.errors import Unavailable


def changed(**more: Any) -> dict[str, Any]:
    """The template with other fields in its document."""
    return {**copy.deepcopy(TEMPLATE), "document": {**copy.deepcopy(DOCUMENT), **more}}


def definitions(served: Served) -> list[DefinitionRecord]:
    return [
        record
        for partition in range(served.platform.log.partitions())
        for _offset, record in served.platform.records(partition)
        if isinstance(record, DefinitionRecord)
    ]


def test_a_fleet_is_made_each_with_its_values(alice: Caller, served: Served) -> None:
    template, ids = a_fleet(served, alice, ["kitchen", "attic"])

    documents = [get(alice, f"/{each}") for each in ids]
    assert [each["name"] for each in documents] == [
        "Thermometer of kitchen",
        "Thermometer of attic",
    ]
    assert documents[1]["customFields"] == {"room": "attic", "model": "x1"}
    code = documents[0]["streams"]["high"]["channels"]["t"]["current-value"]
    assert code == "{$air.channels.t.current-value} - (20)"
    assert documents[0]["template"] == {
        "id": template,
        "version": 1,
        "parameters": {"room": "kitchen"},
    }
    assert sorted(each.service_object for each in definitions(served)) == sorted(ids)
    listed = get(alice, f"/templates/{template}/objects")["data"]
    assert [each["id"] for each in listed] == sorted(ids)


def test_a_job_tells_how_far_it_is(alice: Caller, served: Served) -> None:
    template = a_template(alice)
    made = post(alice, f"/templates/{template}/objects", [{"room": "a"}, {"room": "b"}])

    before = get(alice, f"/jobs/{made['job']}")
    work(served)
    after = get(alice, f"/jobs/{made['job']}")

    assert (before["state"], before["total"], before["done"]) == ("waiting", 2, 0)
    assert (after["state"], after["total"], after["done"]) == ("done", 2, 2)
    assert get(alice, "/jobs")["data"] == [after]


def test_lines_make_a_fleet_too(alice: Caller, served: Served) -> None:
    template = a_template(alice)
    answer = alice.ask(
        "POST",
        f"/templates/{template}/objects",
        data=b'{"room":"a"}\n\n{"room":"b","limit":1.5}\n',
        headers={"Content-Type": "application/x-ndjson"},
    )
    work(served)

    ids = answer.get_json()["ids"]
    assert [get(alice, f"/{each}")["customFields"]["room"] for each in ids] == ["a", "b"]


def test_objects_follow_their_template_each_at_one_offset(alice: Caller, served: Served) -> None:
    template, ids = a_fleet(served, alice, ["a", "b", "c"])
    before = len(definitions(served))

    told = post(alice, f"/templates/{template}", changed(description="new"), 202, "PUT")
    work(served)

    assert told["version"] == 2
    assert [get(alice, f"/{each}")["description"] for each in ids] == ["new"] * 3
    assert len(definitions(served)) == before + 3
    job = get(alice, f"/jobs/{told['job']}")
    assert (job["kind"], job["state"], job["done"], job["failed"]) == ("roll-out", "done", 3, 0)
    assert get(alice, f"/templates/{template}")["objects"] == [{"version": 2, "count": 3}]


def test_a_template_is_rolled_back(alice: Caller, served: Served) -> None:
    template, ids = a_fleet(served, alice, ["a"])
    post(alice, f"/templates/{template}", changed(description="new"), 202, "PUT")
    work(served)

    post(alice, f"/templates/{template}/versions/1/activate", {})
    work(served)

    found = get(alice, f"/{ids[0]}")
    assert "description" not in found
    assert found["template"]["version"] == 1
    versions = get(alice, f"/templates/{template}/versions")["versions"]
    assert [(each["version"], each["active"]) for each in versions] == [(1, True), (2, False)]


def test_a_newer_roll_out_ends_one_that_is_under_way(alice: Caller, served: Served) -> None:
    template, ids = a_fleet(served, alice, ["a"])
    first = post(alice, f"/templates/{template}", changed(description="1"), 202, "PUT")
    post(alice, f"/templates/{template}", changed(description="2"), 202, "PUT")
    work(served)

    assert get(alice, f"/jobs/{first['job']}")["state"] == "superseded"
    assert get(alice, f"/{ids[0]}")["description"] == "2"


def test_custom_fields_that_the_template_leaves_alone_stay(alice: Caller, served: Served) -> None:
    """They belong to the object; what the template changes follows it."""
    template, (id_,) = a_fleet(served, alice, ["a"])
    own = {"customFields": {"room": "mine", "model": "x1", "more": 1}}
    post(alice, f"/{id_}", own, 200, "PUT")

    fields = {"room": {"$parameter": "room"}, "model": "x2"}
    post(alice, f"/templates/{template}", changed(customFields=fields), 202, "PUT")
    work(served)

    expected = {"room": "mine", "model": "x2", "more": 1}
    assert get(alice, f"/{id_}")["customFields"] == expected


def test_a_follower_is_changed_by_its_template_alone(alice: Caller, served: Served) -> None:
    template, (id_,) = a_fleet(served, alice, ["a"])
    document = {**get(alice, f"/{id_}"), "description": "mine"}

    refused = alice.ask("PUT", f"/{id_}", data=orjson.dumps(document))
    post(alice, f"/{id_}?detach=true", document, 200, "PUT")
    post(alice, f"/templates/{template}", changed(description="new"), 202, "PUT")
    work(served)

    assert refused.status_code == 409 and template in refused.get_json()["message"]
    found = get(alice, f"/{id_}")
    assert found["description"] == "mine" and "template" not in found
    assert get(alice, f"/templates/{template}/objects")["data"] == []


def test_earlier_versions_of_a_follower_are_its_templates_affair(
    alice: Caller, served: Served
) -> None:
    template, (id_,) = a_fleet(served, alice, ["a"])
    post(alice, f"/templates/{template}", changed(description="new"), 202, "PUT")
    work(served)

    assert alice.ask("POST", f"/{id_}/versions/1/activate").status_code == 409
    assert alice.ask("POST", f"/{id_}/versions/1/activate?detach=true").status_code == 200


def test_a_template_that_is_followed_stays(alice: Caller, served: Served) -> None:
    template, (id_,) = a_fleet(served, alice, ["a"])

    assert alice.ask("DELETE", f"/templates/{template}").status_code == 409
    assert alice.ask("DELETE", f"/{id_}").status_code == 204
    assert alice.ask("DELETE", f"/templates/{template}").status_code == 204
    assert alice.ask("GET", f"/templates/{template}").status_code == 404


def test_what_fails_is_told_and_stops_nobody(alice: Caller, served: Served) -> None:
    """A new parameter without a default: nobody has a value for it."""
    template, ids = a_fleet(served, alice, ["a", "b"])
    content = copy.deepcopy(TEMPLATE)
    content["parameters"]["floor"] = {"type": "integer"}  # type: ignore[index]
    told = post(alice, f"/templates/{template}", content, 202, "PUT")
    work(served)

    job = get(alice, f"/jobs/{told['job']}")
    assert (job["state"], job["done"], job["failed"]) == ("done", 0, 2)
    assert {each["serviceObject"] for each in job["failures"]} == set(ids)
    assert all("floor" in each["message"] for each in job["failures"])


def test_groups_of_a_template_are_looked_at_for_each(alice: Caller, served: Served) -> None:
    source = alice.create(SIMPLE)
    document = {
        "groups": {"g": {"stream": "a", "soIds": [{"$parameter": "source"}]}},
        "streams": {
            "s": {"channels": {"x": {"type": "number", "current-value": "{$g.lastUpdate}"}}}
        },
    }
    content = {"parameters": {"source": {"type": "string"}}, "document": document}
    template = a_template(alice, content)
    sets = [{"source": source}, {"source": "nobody"}]
    made = post(alice, f"/templates/{template}/objects", sets)
    work(served)

    job = get(alice, f"/jobs/{made['job']}")
    assert (job["done"], job["failed"]) == (1, 1)
    assert job["failures"][0]["item"] == 1
    tree = get(alice, f"/{source}/streams/a/tree")
    assert tree["computations"] == 1


@pytest.mark.parametrize(
    ("content", "pointer"),
    [
        ({}, "/document"),
        ({"document": 5}, "/document"),
        ({"document": {"streams": {}, "template": 1}}, "/document/template"),
        ({"document": {"streams": {}, "x": "{{no}}"}}, "/document/x"),
        ({"document": {"streams": {}, "x": [{"$parameter": "no"}]}}, "/document/x/0"),
        ({"document": {"streams": {}, "{{no}}": 1}}, "/document"),
        ({"parameters": {"a b": {"type": "string"}}, "document": {}}, "/parameters/a b"),
        ({"parameters": {"a": {"type": "object"}}, "document": {}}, "/parameters/a/type"),
        (
            {"parameters": {"a": {"type": "number", "default": "1"}}, "document": {}},
            "/parameters/a/default",
        ),
        ({"document": {"streams": {"s": {}}}}, "/document/streams/s"),
    ],
)
def test_bad_templates_are_refused_with_the_place(
    alice: Caller, content: Any, pointer: str
) -> None:
    answer = alice.ask("POST", "/templates", data=orjson.dumps(content))

    assert answer.status_code == 400, answer.text
    assert pointer in answer.text


@pytest.mark.parametrize(
    ("sets", "pointer"),
    [
        ([{"room": "a"}, {"room": 5}], "/1/room"),
        ([{"room": "a"}, {}], "/1"),
        ([{"room": "a", "no": 1}], "/0/no"),
        ([5], "/0"),
        ({"room": True}, "/room"),
    ],
)
def test_bad_values_are_refused_with_the_place(alice: Caller, sets: Any, pointer: str) -> None:
    template = a_template(alice)
    answer = alice.ask("POST", f"/templates/{template}/objects", data=orjson.dumps(sets))

    assert answer.status_code == 400, answer.text
    assert f'"{pointer}"' in answer.text
    assert get(alice, "/jobs")["data"] == []


def test_templates_and_jobs_are_nobody_elses(alice: Caller, bob: Caller, served: Served) -> None:
    template, _ids = a_fleet(served, alice, ["a"])
    job = get(alice, "/jobs")["data"][0]["id"]

    for method, path in (
        ("GET", f"/templates/{template}"),
        ("PUT", f"/templates/{template}"),
        ("DELETE", f"/templates/{template}"),
        ("GET", f"/templates/{template}/objects"),
        ("GET", f"/templates/{template}/versions"),
        ("GET", f"/templates/{template}/versions/1"),
        ("POST", f"/templates/{template}/versions/1/activate"),
        ("POST", f"/templates/{template}/objects"),
        ("GET", f"/jobs/{job}"),
    ):
        body = [{"room": "a"}] if path.endswith("objects") else TEMPLATE
        data = orjson.dumps(body) if method in ("PUT", "POST") else None
        assert bob.ask(method, path, data=data).status_code == 404, (method, path)
    assert get(bob, "/templates")["data"] == get(bob, "/jobs")["data"] == []


def test_a_job_goes_on_where_it_was(alice: Caller, served: Served) -> None:
    """The broker is away in the middle; nothing is made twice afterwards."""
    template = a_template(alice)
    made = post(alice, f"/templates/{template}/objects", [{"room": str(n)} for n in range(700)])
    background = worker(served.app.extensions[SERVICES])
    assert background.turn()
    served.platform.state.broker_answers = False
    with pytest.raises(Unavailable):
        background.turn()
    served.platform.state.broker_answers = True
    work(served)

    job = get(alice, f"/jobs/{made['job']}")
    assert (job["state"], job["done"], job["failed"]) == ("done", 700, 0)
    assert len({each.service_object for each in definitions(served)}) == 700
