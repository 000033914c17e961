"""Claims that come together, and those that are cut off: each use counts once."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import Caller, Served
from claim_builders import a_code, a_code_of, claim, id_of, objects
from fleet_builders import DOCUMENT, TEMPLATE, a_template, get
from support.together import together

from api.resources import claims
from servioticy.errors import Unavailable


@pytest.fixture
def template(alice: Caller) -> str:
    return a_template(alice)


def test_of_devices_that_come_together_one_gets_the_last_use(
    served: Served, alice: Caller, template: str
) -> None:
    """The others leave nothing behind; nor does who sends the same twice at once."""
    code = a_code(alice, template)
    names = ["a", "b", "c", "c", "c"]
    statuses = together(
        [lambda name=name: claim(served, code, name).status_code for name in names]
    )

    given = [name for name, status in zip(names, statuses, strict=True) if status < 300]
    assert len(set(given)) == 1
    assert sorted(statuses) in ([201, 409, 409, 409, 409], [200, 200, 201, 409, 409])
    assert len(objects(alice)) == 1
    (code_row,) = get(alice, "/claim-codes")["data"]
    assert (code_row["used"], code_row["uses"]) == (1, 1)


def test_claims_and_changes_at_once_wait_for_each_other_and_for_nothing_else(
    served: Served, alice: Caller, template: str
) -> None:
    """A code that is revoked, and a template that is replaced, while devices claim."""
    clients = [Caller(served.app.test_client(), alice.token) for _ in range(3)]
    for number in range(6):
        code = a_code(alice, template, uses=9)
        path = f"/claim-codes/{id_of(served, code)}"
        statuses = together(
            [lambda n=n, code=code: claim(served, code, f"room {n}").status_code for n in range(3)]
            + [
                lambda path=path: clients[0].ask("DELETE", path).status_code,
                lambda n=number: put_template(clients[1], template, n),
                lambda n=number: put_template(clients[2], template, n + 100),
            ]
        )
        assert set(statuses[:3]) <= {201, 404, 429}
        assert statuses[3:] == [204, 202, 202]
    given = served.platform.database.rows("SELECT count(*) FROM tokens WHERE name = ''")
    assert given == [(len(objects(alice)) + 1,)]


def test_of_devices_that_come_together_none_gets_a_token_too_many(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever codes of the Service Object they have; it has one of its own."""
    monkeypatch.setattr(claims, "MAX_TOKENS", 4)
    so = alice.create()
    codes = [a_code_of(alice, so) for _ in range(6)]

    statuses = together([lambda code=code: claim(served, code).status_code for code in codes])

    assert sorted(statuses) == [201] * 3 + [409] * 3


def put_template(caller: Caller, template: str, number: int) -> int:
    content = {**TEMPLATE, "document": {**DOCUMENT, "description": f"the {number}th"}}
    return caller.ask("PUT", f"/templates/{template}", json=content).status_code


def test_a_broker_that_is_away_costs_no_second_use(
    served: Served, alice: Caller, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored before the log knows is the same as after kill -9 there."""
    code = a_code(alice, template)

    def away(*_: Any) -> int:
        raise Unavailable("the broker does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(served.platform.log, "append", away)
        patch.setattr(served.platform.log, "append_all", away)
        assert claim(served, code).status_code == 503

    assert claim(served, code).status_code == 200
    assert len(objects(alice)) == 1


def test_what_ends_before_it_is_stored_leaves_the_use(
    served: Served, alice: Caller, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is lost in the middle of the transaction: no use, no object, no token."""
    code = a_code(alice, template)
    database = served.platform.database
    rows = database.api.rows

    def losing(sql: Any, values: Any = None) -> Any:
        found = rows(sql, values)
        if "counted AS" in str(sql):
            assert found == [(1,)]
            raise Unavailable("Postgres does not answer")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(database.api, "rows", losing)
        assert claim(served, code).status_code == 503
    tokens = "SELECT 1 FROM tokens WHERE service_object IS NOT NULL"
    assert (objects(alice), database.rows(tokens)) == ([], [])

    assert claim(served, code).status_code == 201
