"""Searching updates: what the criteria find, and what is said of those that are none."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from api_builders import Caller, Served
from search_builders import (
    DISTANCE,
    DOCUMENT,
    FIELD,
    MATCH,
    NUMBER,
    Store,
    box,
    search,
    times,
    update,
)

from api.search import walk


@pytest.fixture
def so(alice: Caller) -> str:
    return alice.create(DOCUMENT)


@pytest.fixture
def store(served: Served, so: str) -> Store:
    served.store()
    return Store(served.platform, so)


UPDATES = [
    update(1, n=100, text="Pink Floyd, the wall", location="15.0, 55.0"),
    update(2, n=-5.5, text="pink", location=[20.5, 10.5]),
    update(3, n=150, text="something floid", location="u0m"),
    update(4, n=151, text="", many=[1, 200]),
    update(1_400_000_000, n=0, location="0,179.9"),
    update(1_400_000_000_000, n=1e300, text="floidpink", location="89,-179.9", **{"a.b": 7}),
]
S, MS = 1_400_000_000, 1_400_000_000_000

CASES: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [1, 2, 3, 4, S, MS]),
    ({"unknown": {"x": []}, "timerange": False}, [1, 2, 3, 4, S, MS]),
    ({"timerange": True}, [1, 2, 3, 4, S, MS]),
    ({"timerange": True, "rangefrom": 1}, [1, 2, 3, 4, S, MS]),
    ({"timerange": True, "rangefrom": 2, "rangeto": 3}, [2, 3]),
    ({"timerange": True, "rangefrom": 1.5, "rangeto": 3.5}, [2, 3]),
    ({"timerange": True, "rangeto": 2}, [1, 2]),
    ({"timerange": True, "rangefrom": 3, "rangeto": 2}, []),
    ({"timerange": True, "rangefrom": -1e308, "rangeto": 1e308}, [1, 2, 3, 4, S, MS]),
    # As the library of the original sends it: milliseconds divided by a thousand.
    ({"timerange": True, "rangefrom": 1, "rangeto": 1_795_173_506}, [1, 2, 3, 4, S, MS]),
    ({"timerange": True, "rangefrom": S - 1, "rangeto": S + 1}, [S, MS]),
    ({"timerange": True, "rangefrom": S + 1, "rangeto": S + 2}, []),
    ({"timerange": True, "rangefrom": MS - 1, "rangeto": MS + 1}, [MS]),
    ({**NUMBER, "rangefrom": 100, "rangeto": 150}, [1, 3]),
    ({**NUMBER, "rangeto": -5.5}, [2]),
    ({**NUMBER, "rangefrom": 150.0}, [3, 4, MS]),
    ({**NUMBER}, [1, 2, 3, 4, S, MS]),
    ({**NUMBER, "rangefrom": 5, "rangeto": 1}, []),
    # The bounds are those of both.
    ({**NUMBER, "timerange": True, "rangefrom": 0, "rangeto": 120}, [1]),
    ({**NUMBER, "numericrangefield": FIELD.format("many"), "rangefrom": 150}, [4]),
    ({**NUMBER, "numericrangefield": FIELD.format("a.b")}, [MS]),
    ({**DISTANCE, "geodistancevalue": 10_000}, [1, 2, 3, MS]),
    ({**DISTANCE, "geodistancevalue": 0}, [1]),
    ({**DISTANCE, "geodistancevalue": 5_000, "geodistanceunit": "mi"}, [1, 2, 3]),
    ({**DISTANCE, "geodistancevalue": 100, "geodistanceunit": "m"}, [1]),
    ({**DISTANCE, "geodistancevalue": 1, "geodistanceunit": None}, [1]),
    # Across the meridian of 180 degrees.
    ({**DISTANCE, "pointlat": 0, "pointlon": -180, "geodistancevalue": 20}, [S]),
    ({**DISTANCE, "pointlat": 90, "pointlon": 0, "geodistancevalue": 200}, [MS]),
    (box(0, 0, 100, 100), [1, 2, 3]),
    (box(100, 100, 0, 0), [1, 2, 3]),
    (box(100, 0, 0, 100), [1, 2, 3]),
    (box(20, 60, 10, 20), [1, 2]),
    (box(90, 179, -90, -179), [S, MS]),
    (box(90, -179, -90, 179), [1, 2, 3]),
    (box(15, 55, 15, 55), [1]),
    ({**MATCH, "string": "pink floid"}, [1, 2, 3]),
    ({**MATCH, "matchstring": "PINK"}, [1, 2]),
    ({**MATCH, "matchstring": "wall;--"}, [1]),
    ({**MATCH, "matchstring": "pin"}, []),
    ({**MATCH, "matchstring": "pink", **NUMBER, "rangefrom": 0}, [1]),
    ({**MATCH, "matchstring": "pink floid", **box(0, 0, 12, 22)}, [2]),
    ({"limit": True, "limitcount": 2}, [1, 2]),
    ({"limit": False, "limitcount": -1}, [1, 2, 3, 4, S, MS]),
    ({**NUMBER, "rangefrom": 100, "limit": True, "limitcount": 1}, [1]),
    ({**NUMBER, "limit": True, "limitcount": 2**63}, [1, 2, 3, 4, S, MS]),
]


@pytest.mark.parametrize(("criteria", "found"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_what_fits_is_found(
    criteria: dict[str, Any],
    found: list[int],
    so: str,
    store: Store,
    alice: Caller,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them without blocks, while they are made, and with them."""
    monkeypatch.setattr(walk, "ROWS", 2)
    store.add(*UPDATES)

    answers = [search(alice, so, criteria) for _ in range(3)]

    assert [times(each) for each in answers] == [found] * 3
    assert {each.status_code for each in answers} == ({200} if found else {204})


def test_a_stream_without_updates_has_none_that_fit(so: str, store: Store, alice: Caller) -> None:
    for criteria in ({}, NUMBER, {"timerange": True, "rangefrom": 1}):
        assert search(alice, so, criteria).status_code == 204


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"timerange": 1}, "/timerange", "wrong-type"),
    ({"timerange": "yes"}, "/timerange", "wrong-type"),
    ({"timerange": True, "rangefrom": "1"}, "/rangefrom", "wrong-type"),
    ({"timerange": True, "rangeto": [1]}, "/rangeto", "wrong-type"),
    ({"timerange": True, "rangeto": True}, "/rangeto", "wrong-type"),
    ({"numericrange": True}, "", "required"),
    ({"numericrange": True, "numericrangefield": 5}, "/numericrangefield", "wrong-type"),
    ({"numericrange": True, "numericrangefield": "n"}, "/numericrangefield", "wrong-type"),
    ({**NUMBER, "numericrangefield": "channels."}, "/numericrangefield", "wrong-type"),
    (
        {**NUMBER, "numericrangefield": FIELD.format("__proto__")},
        "/numericrangefield",
        "unknown-channel",
    ),
    ({**NUMBER, "numericrangefield": FIELD.format("text")}, "/numericrangefield", "wrong-type"),
    ({**NUMBER, "rangefrom": {}}, "/rangefrom", "wrong-type"),
    (DISTANCE, "", "required"),
    ({**DISTANCE, "geodistancevalue": -1}, "/geodistancevalue", "wrong-type"),
    ({**DISTANCE, "geodistancevalue": "1"}, "/geodistancevalue", "wrong-type"),
    (
        {**DISTANCE, "geodistancevalue": 1, "geodistanceunit": "x"},
        "/geodistanceunit",
        "no-choice",
    ),
    ({**DISTANCE, "geodistancevalue": 1, "pointlat": 91}, "/pointlat", "wrong-type"),
    ({**DISTANCE, "geodistancevalue": 1, "pointlon": None}, "", "required"),
    ({"geoboundingbox": True}, "", "required"),
    (box(0, 0, 10**9, 0), "/geoboxbottomrightlat", "wrong-type"),
    (
        {**DISTANCE, "geodistancevalue": 1, **box(0, 0, 1, 1)},
        "/geoboundingbox",
        "no-choice",
    ),
    ({"match": True}, "", "required"),
    (MATCH, "", "required"),
    ({**MATCH, "string": " ,"}, "/string", "required"),
    ({**MATCH, "matchstring": 5}, "/matchstring", "wrong-type"),
    ({**MATCH, "matchstring": "x" * 10_001}, "/matchstring", "wrong-type"),
    ({**MATCH, "string": " ".join(map(str, range(101)))}, "/string", "too-much"),
    ({**MATCH, "matchfield": FIELD.format("n"), "string": "x"}, "/matchfield", "wrong-type"),
    ({"limit": True}, "", "required"),
    ({"limit": True, "limitcount": 0}, "/limitcount", "wrong-type"),
    ({"limit": True, "limitcount": -1}, "/limitcount", "wrong-type"),
    ({"limit": True, "limitcount": 1.5}, "/limitcount", "wrong-type"),
    ({"limit": True, "limitcount": "1; DROP TABLE updates"}, "/limitcount", "wrong-type"),
]


@pytest.mark.parametrize(("criteria", "pointer", "code"), BAD)
def test_what_is_no_criterion_is_told_with_its_place(
    criteria: dict[str, Any], pointer: str, code: str, so: str, alice: Caller
) -> None:
    answer = search(alice, so, criteria)

    problem = answer.get_json()
    assert (answer.status_code, problem["pointer"], problem["code"]) == (400, pointer, code)


@pytest.mark.parametrize("criteria", [DISTANCE, box(0, 0, 1, 1)])
def test_a_stream_without_places_is_not_searched_by_place(
    criteria: dict[str, Any], so: str, alice: Caller
) -> None:
    answer = search(alice, so, {**criteria, "geodistancevalue": 1}, "b")

    assert (answer.status_code, answer.get_json()["code"]) == (400, "unknown-channel")


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"null", b'{"a":1,"a":2}'])
def test_criteria_are_a_json_object(body: bytes, so: str, alice: Caller) -> None:
    answer = alice.ask("POST", f"/{so}/streams/a/search", data=body)

    assert answer.status_code == 400


def test_who_may_read_may_search(alice: Caller, bob: Caller) -> None:
    private, public = alice.create(DOCUMENT), alice.create({**DOCUMENT, "public": True})

    assert search(bob, private, {}).status_code == 401
    assert search(bob, public, {}).status_code == 204
    assert search(alice, private, {}, "nothing").status_code == 404


def test_a_search_sees_what_was_accepted_before_it(served: Served, alice: Caller) -> None:
    """Or it says how far behind it is."""
    so = alice.create(DOCUMENT)
    alice.put(so, orjson.dumps(update(1, n=1)))

    assert search(alice, so, NUMBER).headers["X-Servioticy-Behind"] == "2"
    served.store()
    assert "X-Servioticy-Behind" not in search(alice, so, NUMBER).headers


def test_a_long_answer_is_sent_in_pieces(
    so: str, store: Store, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "PAGE_ROWS", 3)
    monkeypatch.setattr("api.resources.search.PAGE_BYTES", 100)
    store.add(*(update(n, n=n % 2) for n in range(50)))

    answer = search(alice, so, {**NUMBER, "rangefrom": 1})

    assert times(answer) == list(range(1, 50, 2))
    assert "Content-Length" not in answer.headers


def test_an_erased_stream_is_searched_anew(
    so: str, store: Store, alice: Caller, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "ROWS", 2)
    store.add(*(update(n, n=n) for n in range(20)))
    assert len(times(search(alice, so, NUMBER))) == 20

    store.erase(so)
    store.add(update(30, n=1))

    assert times(search(alice, so, NUMBER)) == [30]
    while served.platform.store.purge(0, 100, 10**6) is not None:
        pass
    assert times(search(alice, so, NUMBER)) == [30]
    left = "SELECT count(*) FROM search_blocks"
    assert served.platform.database.rows(left) == [(0,)]


def test_blocks_are_few_whatever_comes_late(
    so: str, store: Store, alice: Caller, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches with other ends, late updates one by one: none of it makes many small blocks."""
    monkeypatch.setattr(walk, "ROWS", 8)
    store.add(*(update(n * 10, n=n) for n in range(200)))
    for n in range(0, 200, 3):
        store.add(update(n * 10 + 1, n=n))
        ends = {"timerange": True, "rangefrom": n * 10, "rangeto": 2000 - n}
        search(alice, so, {**MATCH, "string": "x", **ends})
        search(alice, so, {**MATCH, "string": "x"})

    ((count, least),) = served.platform.database.rows(
        "SELECT count(*), min(length(timestamps) / 8) FROM search_blocks"
    )

    assert count <= 2 * 267 // 8 + 1
    assert least is not None
