"""Dynamic groups: who belongs follows the Service Objects that come, change and go."""

from __future__ import annotations

import itertools
from typing import Any

import orjson
import pytest
from api_builders import SIMPLE, Caller, Served
from examples import examples
from fleet_builders import a_fleet, get, post, work
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api.app import SERVICES
from api.fleets import groups
from api.fleets.groups import KEPT_VERSIONS, Groups
from servioticy.domain.records import DefinitionRecord

WHERE = {"customFields.room": "kitchen"}


def an_object(**fields: Any) -> dict[str, Any]:
    return {**SIMPLE, "customFields": fields}


def a_reader(where: Any, **more: Any) -> dict[str, Any]:
    """A document whose composite reads all that fulfils the conditions."""
    code = {"x": {"type": "number", "current-value": "{$all.channels.x.current-value} + 1"}}
    return {
        "groups": {"all": {"where": where, "stream": "a"}},
        "streams": {"s": {"channels": code}},
        **more,
    }


def members(caller: Caller, reader: str) -> list[str]:
    found: list[str] = get(caller, f"/{reader}/groups/all")["members"]
    return found


def changes_of(served: Served, id_: str) -> int:
    return sum(
        isinstance(record, DefinitionRecord) and record.service_object == id_
        for partition in range(served.platform.log.partitions())
        for _offset, record in served.platform.records(partition)
    )


def test_who_fulfils_the_conditions_belongs(alice: Caller) -> None:
    first = alice.create(an_object(room="kitchen"))
    alice.create(an_object(room="attic"))
    reader = alice.create(a_reader(WHERE))

    group = get(alice, f"/{reader}/groups/all")
    assert group["members"] == [first]
    assert group["upToDate"] and group["where"] == WHERE and group["version"] == 1
    assert get(alice, f"/{reader}")["groups"] == {"all": {"where": WHERE, "stream": "a"}}
    tree = get(alice, f"/{first}/streams/a/tree")
    assert [each["stream"] for level in tree["levels"] for each in level] == [f"{reader}/s"]


def test_who_comes_changes_and_goes_is_followed(alice: Caller, served: Served) -> None:
    reader = alice.create(a_reader(WHERE))
    first, second = (alice.create(an_object(room="kitchen")) for _ in range(2))
    work(served)
    both = members(alice, reader)
    post(alice, f"/{first}", {"customFields": {"room": "attic"}}, 200, "PUT")
    work(served)
    one = members(alice, reader)
    alice.ask("DELETE", f"/{second}")
    work(served)

    assert (both, one, members(alice, reader)) == ([first, second], [second], [])
    assert get(alice, f"/{first}/streams/a/tree")["computations"] == 0


def test_no_new_version_has_the_custom_fields_of_an_old_one(alice: Caller, served: Served) -> None:
    """They were stored with each version once."""
    reader = alice.create(a_reader(WHERE, customFields={"room": "attic"}))
    old = served.platform.document(reader)
    served.platform.put_document(reader, {**old, "customFields": {"room": "attic"}})
    first = alice.create(an_object(room="kitchen"))
    work(served)

    assert members(alice, reader) == [first]
    assert "customFields" not in served.platform.document(reader, 2)
    assert get(alice, f"/{reader}")["customFields"] == {"room": "attic"}


def test_all_that_has_changed_meanwhile_is_one_change(alice: Caller, served: Served) -> None:
    reader = alice.create(a_reader(WHERE))
    for _ in range(5):
        alice.create(an_object(room="kitchen"))
    work(served)
    work(served)

    assert changes_of(served, reader) == 2
    assert get(alice, f"/{reader}/groups/all")["version"] == 2


def test_the_original_question_of_the_stream_among_the_conditions(alice: Caller) -> None:
    device = alice.create(an_object(room="kitchen"))
    document = a_reader(None)
    document["groups"] = {"all": {"where": {**WHERE, "stream": "a"}}}
    reader = alice.create(document)

    assert members(alice, reader) == [device]
    assert get(alice, f"/{reader}/groups/all")["stream"] == "a"


def test_names_choices_and_templates_are_conditions(alice: Caller, served: Served) -> None:
    named = alice.create({**SIMPLE, "name": "one"})
    kitchen = alice.create(an_object(room="kitchen", floor=3))
    attic = alice.create(an_object(room="attic", floor=4, at={"wall": "north"}))
    template, made = a_fleet(served, alice, ["kitchen"])
    for where, expected in (
        ({"name": ["one", "two"]}, [named]),
        ({"customFields.room": ["kitchen", "attic"]}, [kitchen, attic]),
        ({"customFields.floor": 3}, [kitchen]),
        ({"customFields.at.wall": "north"}, [attic]),
        ({"customFields.room": "kitchen", "customFields.floor": [4, 5]}, []),
    ):
        assert members(alice, alice.create(a_reader(where))) == expected, where
    document = a_reader({"template": template})
    document["groups"]["all"]["stream"] = "air"
    assert members(alice, alice.create(document)) == made


def test_others_belong_if_public_and_asked_for(alice: Caller, bob: Caller, served: Served) -> None:
    public = bob.create(an_object(room="kitchen") | {"public": True})
    private = bob.create(an_object(room="kitchen"))
    own = alice.create(a_reader(WHERE))
    open_ = alice.create(a_reader({**WHERE, "public": True}))
    before = (members(alice, own), members(alice, open_))
    bob.ask("PUT", f"/{public}", data=orjson.dumps(an_object(room="kitchen")))
    work(served)

    assert before == ([], [public])
    assert members(alice, open_) == []
    assert private


def test_a_document_read_back_may_be_put_again(alice: Caller, served: Served) -> None:
    alice.create(an_object(room="kitchen"))
    reader = alice.create(a_reader(WHERE))
    document = get(alice, f"/{reader}")
    post(alice, f"/{reader}", document, 200, "PUT")
    post(alice, f"/{reader}", {**document, "description": "x"}, 200, "PUT")
    work(served)

    assert len(members(alice, reader)) == 1
    assert get(alice, f"/{reader}/versions/2")["groups"] == document["groups"]


def test_a_group_may_become_one_of_ids_again(alice: Caller, served: Served) -> None:
    reader = alice.create(a_reader(WHERE))
    document = a_reader(WHERE)
    document["groups"] = {"all": {"soIds": [], "stream": "a"}}
    post(alice, f"/{reader}", document, 200, "PUT")
    alice.create(an_object(room="kitchen"))
    work(served)

    assert "where" not in get(alice, f"/{reader}/groups/all")
    assert members(alice, reader) == []


def test_what_looks_like_a_nul_in_a_document_hides_none_of_its_groups(
    alice: Caller, served: Served
) -> None:
    """Postgres would look into no document with one; the group is followed all the same."""
    reader = alice.create(a_reader(WHERE, description="\\u0000"))
    device = alice.create(an_object(room="kitchen"))
    work(served)

    assert members(alice, reader) == [device]
    assert get(alice, f"/{reader}")["description"] == "\\u0000"


def test_old_automatic_versions_go(alice: Caller, served: Served) -> None:
    reader = alice.create(a_reader(WHERE))
    device = alice.create(an_object(room="kitchen"))
    for number in range(KEPT_VERSIONS + 10):
        room = "attic" if number % 2 else "kitchen"
        post(alice, f"/{device}", {"customFields": {"room": room, "n": number}}, 200, "PUT")
        work(served)
        sql = "UPDATE service_objects SET active_version = version"  # as a pipeline would
        served.platform.database.rows(sql)

    versions = [each["version"] for each in get(alice, f"/{reader}/versions")["versions"]]
    assert versions[0] == 1
    assert len(versions) <= KEPT_VERSIONS + 3


@pytest.mark.parametrize(
    ("group", "pointer"),
    [
        ({"where": {}, "stream": "a"}, "/groups/all/where"),
        ({"where": 5, "stream": "a"}, "/groups/all/where"),
        ({"where": {"no": 1}, "stream": "a"}, "/groups/all/where/no"),
        ({"where": {"name": {}}, "stream": "a"}, "/groups/all/where/name"),
        ({"where": {"name": "a\0"}, "stream": "a"}, "/groups/all/where/name"),
        ({"where": {"name": "x" * 201}, "stream": "a"}, "/groups/all/where/name"),
        ({"where": {"public": 1}, "stream": "a"}, "/groups/all/where/public"),
        ({"where": {"name": "a", "stream": "b"}, "stream": "a"}, "/groups/all/where/stream"),
        ({"where": {"customFields.a.b.c.d.e.f": 1}, "stream": "a"}, "/groups/all/where"),
        ({"where": WHERE, "soIds": [], "stream": "a"}, "/groups/all/soIds"),
    ],
)
def test_bad_conditions_are_refused_with_the_place(
    alice: Caller, group: Any, pointer: str
) -> None:
    document = a_reader(WHERE)
    document["groups"]["all"] = group
    answer = alice.ask("POST", "/", data=orjson.dumps(document))

    assert answer.status_code == 400, answer.text
    assert pointer in answer.text


def test_whoever_has_many_groups_keeps_nobody_waiting(
    alice: Caller, bob: Caller, served: Served
) -> None:
    """Turns are short, and tenants have them by turns; whoever goes on, goes on where it was."""
    where = {**WHERE, "public": True}
    many = [alice.create(a_reader(where)) for _ in range(5)]
    work(served)
    own = bob.create(a_reader(WHERE))
    device = bob.create(an_object(room="kitchen") | {"public": True})

    def turn() -> bool:
        ticks = itertools.count(step=groups.TURN_SECONDS / 2)  # a group takes half of a turn
        return Groups(served.app.extensions[SERVICES], lambda: float(next(ticks))).turn()

    def done() -> int:
        return sum(members(alice, each) == [device] for each in many)

    turn()
    assert (done(), members(bob, own)) == (1, [])
    turn()
    assert (done(), members(bob, own)) == (1, [device])
    second = bob.create(an_object(room="kitchen"))
    while turn():
        pass
    assert (done(), members(bob, own)) == (len(many), [device, second])
    assert served.platform.database.rows("SELECT 1 FROM group_looks") == []


ROOMS = st.sampled_from(["kitchen", "attic", 3, "3", True, None])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "customise", "replace", "delete"]), ROOMS, st.integers(0, 9)
    ),
    max_size=12,
)


@settings(
    max_examples=examples(25),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(
    steps=STEPS,
    wanted=st.lists(ROOMS.filter(lambda each: each is not None), min_size=1, max_size=2),
)
def test_after_all_changes_those_belong_for_whom_the_conditions_hold(
    alice: Caller, served: Served, steps: list[tuple[str, Any, int]], wanted: list[Any]
) -> None:
    """Whatever came, changed and went, and whenever the follower looked."""
    reader = alice.create(a_reader({"customFields.room": wanted}))
    there: dict[str, Any] = {}
    for kind, room, number in steps:
        fields = {} if room is None else {"room": room}
        id_ = list(there)[number % len(there)] if there else None
        if kind == "create" or id_ is None:
            there[alice.create(an_object(**fields))] = room
        elif kind == "customise":
            post(alice, f"/{id_}", {"customFields": fields}, 200, "PUT")
            there[id_] = room
        elif kind == "replace":
            post(alice, f"/{id_}", {**an_object(**fields), "n": number}, 200, "PUT")
            there[id_] = room
        else:
            alice.ask("DELETE", f"/{id_}")
            del there[id_]
        if number % 3 == 0:
            work(served)
    work(served)

    texts = {orjson.dumps(each).decode().strip('"') for each in wanted}
    expected = [
        id_
        for id_, room in there.items()
        if room is not None and orjson.dumps(room).decode().strip('"') in texts
    ]
    assert members(alice, reader) == expected
    for id_ in (reader, *there):  # for the next example
        alice.ask("DELETE", f"/{id_}")
