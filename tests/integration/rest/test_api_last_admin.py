"""The last admin of a tenant stays one, unless a token could add another."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from api_builders import Caller, Served
from member_builders import added, person
from token_issuer import TokenIssuer

Json = dict[str, Any]


@pytest.fixture
def two(alice: Caller, served: Served, issuer: TokenIssuer) -> tuple[Caller, list[str]]:
    """A tenant with two admins and no token of its own."""
    ids = [added(alice, subject=each)["id"] for each in ("carol", "dave")]
    served.platform.database.rows("DELETE FROM tokens")
    return person(served, issuer.token("carol")), ids


ENDING = [("DELETE", {}), ("PATCH", {"json": {"role": "developer"}})]


@pytest.mark.parametrize(("method", "sent"), ENDING, ids=["remove", "change"])
def test_the_last_admin_stays_one_where_no_token_could_add_another(
    two: tuple[Caller, list[str]], method: str, sent: Json
) -> None:
    carol, (own, other) = two
    assert carol.ask(method, f"/members/{other}", **sent).status_code < 300

    answer = carol.ask(method, f"/members/{own}", **sent)

    assert answer.status_code == 409
    assert "Nobody would be left" in answer.get_json()["message"]
    assert carol.ask("PATCH", f"/members/{own}", json={"name": "Carol"}).status_code == 200
    added(carol, subject="erin")
    assert carol.ask(method, f"/members/{own}", **sent).status_code < 300


TOKENS = [
    ({}, True),
    ({"rights": ["admin"]}, True),
    ({"rights": ["read", "change"]}, False),
    ({"expiresIn": 60}, False),
]


@pytest.mark.parametrize(("token", "may"), TOKENS)
def test_the_last_admin_may_go_where_a_token_can_add_another(
    two: tuple[Caller, list[str]], token: Json, may: bool
) -> None:
    carol, (own, other) = two
    assert carol.ask("POST", "/tokens", json={"name": "n", **token}).status_code == 201
    carol.ask("DELETE", f"/members/{other}")

    assert carol.ask("DELETE", f"/members/{own}").status_code == (204 if may else 409)


def test_two_admins_cannot_remove_each_other_at_once(
    two: tuple[Caller, list[str]], served: Served, issuer: TokenIssuer
) -> None:
    """Each sees the other while it is decided, and still one stays."""
    carol, (own, other) = two
    dave = person(served, issuer.token("dave"))
    ready, statuses = threading.Barrier(2), []

    def remove(caller: Caller, id_: str) -> None:
        ready.wait(10)
        statuses.append(caller.ask("DELETE", f"/members/{id_}").status_code)

    threads = [
        threading.Thread(target=remove, args=each) for each in ((carol, other), (dave, own))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    # The second is a stranger, where the first was done before it asked.
    assert sorted(statuses) in ([204, 403], [204, 409])
    assert len(served.platform.database.rows("SELECT id FROM members")) == 1
