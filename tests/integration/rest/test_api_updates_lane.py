"""Updates that come together are answered as each would be alone, or left to the application."""

from __future__ import annotations

import json
from typing import Any
from unittest import mock

import pytest
from api_builders import SIMPLE, Caller, Served
from token_issuer import TokenIssuer

from api.app import SERVICES
from api.edge.calls import Answer, Application, Request
from api.http.quotas import Quotas
from api.updates_lane import UpdatesLane
from servioticy.domain.records import UpdateRecord
from servioticy.http_heads import parse
from servioticy.storage.quotas import PostgresQuotas

BODY = b'{"channels":{"x":{"current-value":1}},"lastUpdate":5}'


@pytest.fixture
def application(served: Served) -> Application:
    lane = UpdatesLane(served.app.extensions[SERVICES].ingest)
    return Application(served.app, "127.0.0.1", 8080, lane.answers)


def a_put(
    path: str, token: str, body: bytes = BODY, *headers: str, method: str = "PUT"
) -> Request:
    lines = [f"{method} {path} HTTP/1.1", "Host: h", f"Authorization: {token}", *headers]
    lines.append(f"Content-Length: {len(body)}")
    return Request(parse("\r\n".join(lines).encode()), body, "127.0.0.1")


def answers(application: Application, *requests: Request) -> list[Answer | None]:
    assert application.together is not None
    return application.together(list(requests))


def known(caller: Caller, document: Any = SIMPLE) -> str:
    """A Service Object whose document is understood already."""
    so = caller.create(document)
    assert caller.put(so).status_code == 202
    return so


def updates(served: Served) -> list[Any]:
    log = [served.platform.records(n) for n in range(served.platform.log.partitions())]
    return [each for records in log for _, each in records if isinstance(each, UpdateRecord)]


def test_a_plain_update_is_answered_as_by_the_application(
    alice: Caller, served: Served, application: Application
) -> None:
    so = known(alice)
    request = a_put(f"/{so}/streams/a", alice.token, BODY, "Content-Type: application/json")
    (quick,) = answers(application, request)
    slow = application.call(request)

    assert isinstance(quick, Answer)
    assert isinstance(slow, Answer)
    assert sorted(quick.headers) == sorted(slow.headers)
    assert (quick.status, quick.body, quick.caller) == (slow.status, slow.body, slow.caller)
    assert bytes(updates(served)[-1].update) == bytes(updates(served)[-2].update) == BODY


def test_the_good_ones_are_taken_in_order_the_others_are_left(
    alice: Caller, bob: Caller, served: Served, application: Application
) -> None:
    so, theirs = known(alice), known(bob)
    before = len(updates(served))
    good = [b'{"channels":{"x":{"current-value":%d}},"lastUpdate":%d}' % (n, n) for n in (7, 6, 8)]
    path = f"/{so}/streams/a"

    found = answers(
        application,
        a_put(path, alice.token, good[0]),
        a_put(f"/{theirs}/streams/a", alice.token),  # not hers
        a_put(path, "nobody's"),
        a_put(path, f"Bearer {alice.token}", good[1]),
        a_put(f"/{so}/streams/nothing", alice.token),
        a_put("/nothing/streams/a", alice.token),
        a_put(path, alice.token, b"no json"),
        a_put(path, alice.token, b'{"channels":{"y":{"current-value":1}},"lastUpdate":5}'),
        a_put(
            path, alice.token, b'{"channels":{"x":{"current-value":1}},"lastUpdate":%d}' % 2**62
        ),
        a_put(path, alice.token, BODY, "Content-Type: text/plain"),
        a_put(path, alice.token, BODY, "Content-Encoding: gzip"),
        a_put(path + "?a=b", alice.token),
        a_put(path, alice.token, BODY, method="POST"),
        a_put(f"/{theirs}/streams/a", bob.token, good[2]),
    )

    taken = [number for number, each in enumerate(found) if each is not None]
    assert taken == [0, 3, 13]
    new = updates(served)
    assert len(new) == before + 3
    assert [each.timestamp for each in new if each.service_object == so][-2:] == [7, 6]
    assert [each.timestamp for each in new if each.service_object == theirs][-1] == 8


def test_what_is_not_known_yet_is_left(
    alice: Caller, served: Served, application: Application
) -> None:
    """To read a document takes time that the others would wait for."""
    so = alice.create()

    assert answers(application, a_put(f"/{so}/streams/a", alice.token)) == [None]
    assert not updates(served)


def test_a_tokens_end_is_heeded_at_once(
    alice: Caller, served: Served, application: Application
) -> None:
    so = known(alice)
    served.platform.database.rows("UPDATE tokens SET revoked_at = now()")

    assert answers(application, a_put(f"/{so}/streams/a", alice.token)) == [None]


def test_who_has_used_up_a_quota_is_told_so_here(
    alice: Caller, bob: Caller, served: Served, application: Application
) -> None:
    """It costs less than what it would have."""
    so, theirs = known(alice), known(bob)
    PostgresQuotas(served.platform.database).give("alice", "updates", 1)
    served.app.extensions[SERVICES].quotas._known.clear()
    path = f"/{so}/streams/a"

    found = answers(
        application,
        a_put(path, alice.token),
        a_put(path, alice.token),
        a_put(path, alice.token, b"not even looked at"),
        a_put(f"/{theirs}/streams/a", bob.token),
    )

    statuses = [each.status.split()[0] for each in found if each is not None]
    assert statuses == ["202", "429", "429", "202"]
    assert isinstance(found[1], Answer)
    assert dict(found[1].headers)["RateLimit"] == '"updates";r=0;t=1'
    slow = application.call(a_put(path, alice.token))
    assert isinstance(slow, Answer)
    assert (found[1].status.upper(), found[1].caller) == (slow.status, slow.caller)
    assert json.loads(found[1].body) == json.loads(slow.body)


@pytest.mark.parametrize(("part", "counted"), [("broker", 1), ("postgres", 0)])
def test_where_a_part_is_down_nothing_is_promised(
    alice: Caller, served: Served, application: Application, part: str, counted: int
) -> None:
    """Nor counted: the application does, which is asked then."""
    so = known(alice)
    setattr(served.platform.state, f"{part}_answers", False)

    with mock.patch.object(Quotas, "give_back", autospec=True) as given_back:
        assert answers(application, a_put(f"/{so}/streams/a", alice.token)) == [None]
    assert [call.args[2:] for call in given_back.call_args_list] == [(1, len(BODY))] * counted


@pytest.mark.parametrize(("role", "taken"), [("viewer", False), ("operator", True)])
def test_members_send_as_their_tenant_if_their_role_is_for_it(
    role: str, taken: bool, alice: Caller, application: Application, issuer: TokenIssuer
) -> None:
    """What is wrong with one's token takes nothing from the others."""
    so = known(alice)
    alice.ask("POST", "/members", json={"subject": "carol", "role": role})
    path = f"/{so}/streams/a"
    found = answers(
        application,
        a_put(path, f"Bearer alice~{issuer.token('carol', exp=5)}"),
        a_put(path, f"Bearer alice~{issuer.token('carol')}"),
        a_put(path, alice.token),
    )

    assert [each is not None for each in found] == [False, taken, True]
