"""Service Objects are found by what their documents say, one's own and public ones."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import orjson
import pytest
from api_builders import SIMPLE, Caller, Served
from werkzeug.test import TestResponse

from api.documents import listing
from servioticy.storage import migrations


@pytest.fixture(autouse=True, params=[listing.SMALL_BYTES, 0], ids=["there", "beforehand"])
def _derived(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What they are listed by is derived where the change is made, or beforehand."""
    monkeypatch.setattr(listing, "SMALL_BYTES", request.param)


def search(caller: Caller, query: str = "") -> TestResponse:
    return caller.ask("GET", f"/service-objects?{query}")


def found(caller: Caller, query: str = "") -> list[str]:
    answer = search(caller, query)
    assert answer.status_code == 200, answer.text
    return [each["id"] for each in answer.get_json()["data"]]


@pytest.fixture
def kitchen(alice: Caller) -> str:
    return alice.create(
        {
            "name": "Thermometer of the kitchen",
            "customFields": {
                "room": "kitchen",
                "floor": 3,
                "at": {"wall": "north"},
                "tags": ["a", "b"],
                "warm": True,
                "location": "41.38,2.11",
            },
            "streams": {
                "air": {"channels": {"t": {"type": "number"}}},
                "text": {"channels": {"t": {"type": "STRING"}}},
            },
        }
    )


@pytest.fixture
def attic(alice: Caller) -> str:
    fields = {"room": "attic", "location": [2.20, 41.40]}
    return alice.create({**SIMPLE, "name": "100%_a", "customFields": fields})


@pytest.mark.parametrize(
    ("query", "which"),
    [
        ("", "both"),
        ("name=thermo", "kitchen"),
        ("name=OF THE", "kitchen"),
        ("name=%25", "attic"),
        ("name=_", "attic"),
        ("name=.", "none"),
        ("customFields.room=kitchen", "kitchen"),
        ("customFields.room=Kitchen", "none"),
        ("customFields.floor=3", "kitchen"),
        ("customFields.warm=true", "kitchen"),
        ("customFields.at.wall=north", "kitchen"),
        ("customFields.tags=b", "kitchen"),
        ("customFields.tags=b&customFields.tags=c", "none"),
        ("customFields.room=kitchen&customFields.floor=4", "none"),
        ("channelType=number", "both"),
        ("channelType=string", "kitchen"),
        ("channelType=geo_point", "none"),
        ("stream=air", "kitchen"),
        ("stream=a", "attic"),
        ("streamName=A", "both"),
        ("streamName=AI", "kitchen"),
        ("streamName=x", "kitchen"),
        ("streamName=ai&stream=text", "kitchen"),
        ("streamName=_", "none"),
        ("streamName=%25", "none"),
        ("streamName=celsius", "none"),
        ("near=41.38,2.11,0.001", "kitchen"),
        ("near=41.39,2.15,6", "both"),
        ("near=41.40,2.20,1", "attic"),
        ("near=-41,-170,100", "none"),
        ("near=0,0,20040", "both"),
        ("name=thermo&customFields.room=kitchen&channelType=number&stream=air", "kitchen"),
        ("unknown=1", "both"),
    ],
)
def test_each_condition_finds_what_it_says(
    query: str, which: str, alice: Caller, kitchen: str, attic: str
) -> None:
    expected = {"both": [kitchen, attic], "kitchen": [kitchen], "attic": [attic], "none": []}

    assert sorted(found(alice, quote(query, safe="=&,%"))) == sorted(expected[which])


def test_an_entry_tells_what_a_list_shows(alice: Caller, kitchen: str) -> None:
    entry = search(alice).get_json()["data"][0]

    created = entry.pop("createdAt")
    assert entry == {
        "id": kitchen,
        "name": "Thermometer of the kitchen",
        "public": False,
        "updatedAt": created,
        "own": True,
    }


def test_what_changes_is_found_by_what_it_is_now(alice: Caller, kitchen: str) -> None:
    fields = {"customFields": {"room": "cellar"}}
    assert alice.ask("PUT", f"/{kitchen}", data=orjson.dumps(fields)).status_code == 200
    assert (found(alice, "customFields.room=cellar"), found(alice, "customFields.floor=3")) == (
        [kitchen],
        [],
    )
    other = {"name": "Other", "streams": {"b": {"channels": {"x": {"type": "boolean"}}}}}
    assert alice.ask("PUT", f"/{kitchen}", data=orjson.dumps(other)).status_code == 200
    assert found(alice, "name=other&channelType=boolean&stream=b") == [kitchen]
    assert found(alice, "channelType=number") == found(alice, "stream=air") == []
    assert alice.ask("POST", f"/{kitchen}/versions/1/activate").status_code == 200
    assert found(alice, "name=thermo&stream=air") == [kitchen]
    assert alice.ask("DELETE", f"/{kitchen}").status_code == 204
    assert found(alice) == []


def test_others_are_found_where_they_are_public_and_asked_for(
    alice: Caller, bob: Caller, kitchen: str
) -> None:
    """Nothing tells of the private ones, not even a gap in a page."""
    public = alice.create({**SIMPLE, "name": "open", "public": True})
    own = bob.create({**SIMPLE, "name": "own"})

    answer = search(bob, "public=true&limit=2")

    assert found(bob) == [own]
    data = answer.get_json()["data"]
    assert {each["id"]: each["own"] for each in data} == {public: False, own: True}
    assert found(bob, "public=true&customFields.room=kitchen") == []
    assert sorted(found(alice, "public=true")) == sorted([kitchen, public])


def test_pages_follow_each_other(alice: Caller, bob: Caller) -> None:
    ids = [alice.create() for _ in range(5)]
    bob.create()

    pages: list[list[str]] = []
    path: str | None = "/service-objects?limit=2&channelType=number"
    while path is not None:
        answer = alice.ask("GET", path)
        pages.append([each["id"] for each in answer.get_json()["data"]])
        link = answer.headers.get("Link")
        path = None if link is None else link[link.index("/service") : link.index(">")]

    assert [len(each) for each in pages] == [2, 2, 1]
    assert [id_ for page in pages for id_ in page] == sorted(ids)


def test_a_cursor_of_another_tenant_is_refused(alice: Caller, bob: Caller) -> None:
    for _ in range(2):
        alice.create()
    link = search(alice, "limit=1").headers["Link"]
    cursor = link[link.index("cursor=") : link.index(">")]

    assert (search(alice, cursor).status_code, search(bob, cursor).status_code) == (200, 400)


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=-1",
        "limit=1000000000",
        "cursor=x",
        "public=1",
        "name=%00",
        "name=" + "x" * 201,
        "near=1,2",
        "near=91,0,1",
        "near=0,181,1",
        "near=0,0,-1",
        "near=0,0,nan",
        "near=0,0,1e309",
        "near=a,b,c",
        "customFields.%00=1",
        "customFields.a=%00",
        "&".join(f"customFields.{n}=1" for n in range(21)),
    ],
)
def test_nonsense_is_refused(query: str, alice: Caller) -> None:
    assert search(alice, query).status_code == 400


@pytest.mark.parametrize(
    "query",
    [
        "name=' OR 1=1 --",
        "name=%25' UNION SELECT digest FROM tokens --",
        "stream='; DROP TABLE listings; --",
        'channelType={a,"b',
        "customFields.a'=b",
        "customFields.=",
        "customFields.__proto__=constructor",
    ],
)
def test_statements_in_parameters_find_nothing(query: str, alice: Caller, kitchen: str) -> None:
    assert found(alice, quote(query, safe="=%")) == []


ODD: list[Any] = [
    "text",
    [1, 2],
    {"location": "north"},
    {"location": "91,0"},
    {"location": "1e999,0"},
    {"location": "NaN,NaN"},
    {"location": [1]},
    {"location": {"lat": 1}},
    {"location": ["a", "b"]},
    {"location": [1e308, 1e308]},
    {"a": "x" * 5_000},
    {str(n): n for n in range(1_500)},
    {"a": [[[[[[[[1]]]]]]]]},
]


@pytest.mark.parametrize("fields", ODD, ids=range(len(ODD)))
def test_odd_fields_refuse_nothing(fields: Any, alice: Caller) -> None:
    """What a search cannot use is stored all the same, and the object is listed."""
    so = alice.create({**SIMPLE, "name": {"not": "text"}, "customFields": fields})

    assert found(alice) == [so]
    assert found(alice, "near=0,0,20040") == []


def test_what_was_there_before_is_listed(served: Served, alice: Caller, kitchen: str) -> None:
    """The migration lists what it finds as the trigger does."""
    database = served.platform.database
    every = (
        "SELECT service_object, tenant_id, name, fields, channel_types, latitude, longitude"
        "  FROM listings ORDER BY service_object"
    )
    before = database.rows(every)
    text = next(
        each for each in migrations._files() if each.name == "0020_listing.sql"
    ).read_text()
    database.rows("DELETE FROM listings")

    database.rows(text[text.rindex("INSERT INTO listings") :])

    assert database.rows(every) == before
    assert len(before) == 1


def test_what_a_large_document_is_listed_by_is_derived_before_the_right_to_change(
    alice: Caller, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A document with 20,000 channels took everybody's next change tenths of a second."""
    monkeypatch.setattr(listing, "SMALL_BYTES", 1_000)

    def listed(so: str) -> tuple[int | None, int]:
        sql = (
            "SELECT listings.revision, service_objects.revision FROM service_objects"
            "  JOIN listings ON service_object = id WHERE id = %(so)s"
        )
        (row,) = served.platform.database.rows(sql, {"so": so})
        found: tuple[int | None, int] = row
        return found

    large = {**SIMPLE, "customFields": {"room": "attic"}, "description": "x" * 1_000}
    so = alice.create(large)
    assert listed(so) == (1, 1)
    changed = {**large, "name": "other", "customFields": {"room": "cellar"}}
    assert alice.ask("PUT", f"/{so}", json=changed).status_code == 200
    assert (listed(so), found(alice, "customFields.room=cellar")) == ((2, 2), [so])
    assert alice.ask("POST", f"/{so}/versions/1/activate").status_code == 200
    assert listed(so) == (3, 3)
    assert found(alice, "customFields.room=cellar&name=other") == []
    assert found(alice, "customFields.room=cellar") == [so], "customFields are of no version"

    fields = {**large, "customFields": {"room": "hall"}}
    assert alice.ask("PUT", f"/{so}", json=fields).status_code == 200
    assert (listed(so)[0], found(alice, "customFields.room=hall")) == (None, [so])
    assert listed(alice.create(SIMPLE)) == (None, 1)
