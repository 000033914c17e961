"""A history is read page by page, in either order, and a cursor says where it goes on."""

from __future__ import annotations

import base64
from urllib.parse import urlsplit

import pytest
from api_builders import Caller, Served
from histories import store
from werkzeug.test import TestResponse

from api.http import cursors
from api.resources import history_pages


def following(answer: TestResponse) -> str | None:
    """Return the path and query of the next page."""
    link = answer.headers.get("Link")
    if link is None:
        return None
    address, _, relation = link.partition(">; ")
    assert relation == 'rel="next"'
    parts = urlsplit(address.removeprefix("<"))
    return f"{parts.path}?{parts.query}"


def timestamps(answer: TestResponse) -> list[int]:
    assert answer.status_code == 200, answer.text
    return [each["lastUpdate"] for each in answer.get_json()["data"]]


def all_pages(caller: Caller, path: str | None) -> list[list[int]]:
    found = []
    while path is not None:
        answer = caller.ask("GET", path)
        found.append(timestamps(answer))
        path = following(answer)
    return found


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [[0, 1, 2, 3, 4, 5, 6]]),
        ("?limit=3", [[0, 1, 2], [3, 4, 5], [6]]),
        ("?limit=3&order=desc", [[6, 5, 4], [3, 2, 1], [0]]),
        ("?limit=2&from=2&to=5", [[2, 3], [4, 5]]),
        ("?limit=2&from=2&to=5&order=desc", [[5, 4], [3, 2]]),
        ("?from=7", [[]]),
        ("?from=0&to=3153600000000&limit=1000&size=5", [[0, 1, 2, 3, 4, 5, 6]]),
    ],
)
def test_pages_follow_each_other(
    query: str, expected: list[list[int]], served: Served, alice: Caller
) -> None:
    so = alice.create()
    store(served, so, 7)

    assert all_pages(alice, f"/{so}/streams/a/updates{query}") == expected


def test_a_page_ends_with_its_bytes(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    so = alice.create()
    store(served, so, 5, size=100)
    monkeypatch.setattr(history_pages, "PAGE_BYTES", 200)

    assert all_pages(alice, f"/{so}/streams/a/updates") == [[0, 1], [2, 3], [4]]


def test_what_comes_between_two_pages_neither_repeats_nor_hides(
    served: Served, alice: Caller
) -> None:
    """The cursor is a place in time, not a number of rows."""
    so = alice.create()
    store(served, so, 2)
    first = alice.ask("GET", f"/{so}/streams/a/updates?limit=1&order=desc")
    store(served, so, 4)

    path = following(first)

    assert (timestamps(first), all_pages(alice, path)) == ([1], [[0]])


def test_versions_are_told_to_who_asks(served: Served, alice: Caller) -> None:
    so = alice.create()
    store(served, so, 1)

    answer = alice.ask("GET", f"/{so}/streams/a/updates?versions=true").get_json()["data"]

    assert answer[0]["version"] == 1


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=-1",
        "limit=1001",
        "limit=1000000000",
        "limit=1e3",
        "limit=",
        "limit=1;DROP TABLE updates",
        "order=up",
        "order=desc%20--",
        "from=-1",
        "from=1.5",
        "from=x",
        "to=9223372036854775808",
        "from=5&to=4",
        "from=%00",
        "cursor=",
        "cursor=AAAA",
        "cursor=%FF",
        "cursor=%C3%A9",
        "cursor=" + "A" * 5_000,
    ],
)
def test_nonsense_is_refused(query: str, alice: Caller) -> None:
    so = alice.create()

    assert alice.ask("GET", f"/{so}/streams/a/updates?{query}").status_code == 400


@pytest.mark.parametrize("place", ["x", "99999999999999999999", "-1", "1 OR 1=1", "\xff", ""])
def test_a_cursor_with_a_right_check_and_a_wrong_place_is_refused(
    place: str, served: Served, alice: Caller
) -> None:
    """How the check is computed is no secret."""
    so = alice.create()
    key = served.platform.stream(so)
    content = place.encode("latin-1")
    check = cursors._check(f"updates {key.tenant} {key.stream_id} False", content)
    cursor = base64.urlsafe_b64encode(check + content).decode()

    assert alice.ask("GET", f"/{so}/streams/a/updates?cursor={cursor}").status_code == 400


def test_a_cursor_is_good_for_its_own_list_alone(served: Served, alice: Caller) -> None:
    so, other = alice.create(), alice.create()
    store(served, so, 2)
    path = following(alice.ask("GET", f"/{so}/streams/a/updates?limit=1"))
    assert path is not None
    cursor = path.rpartition("=")[2]
    changed = cursor[:-6] + ("B" if cursor[-6] != "B" else "C") + cursor[-5:]

    answers = [
        alice.ask("GET", f"/{other}/streams/a/updates?cursor={cursor}"),
        alice.ask("GET", f"/{so}/streams/a/updates?order=desc&cursor={cursor}"),
        alice.ask("GET", f"/{so}/streams/a/updates?cursor={changed}"),
        alice.ask("GET", f"/{so}/streams/a/updates?cursor={cursor}"),
    ]

    assert [each.status_code for each in answers] == [400, 400, 400, 200]


def test_only_what_is_public_is_shown_to_others(
    served: Served, alice: Caller, bob: Caller
) -> None:
    private, public = (
        alice.create(),
        alice.create({"public": True, "streams": {"a": {"channels": {"x": {"type": "number"}}}}}),
    )

    answers = [bob.ask("GET", f"/{so}/streams/a/updates") for so in (private, public, "none")]

    assert [each.status_code for each in answers] == [401, 200, 404]
