"""Requests that come together pass no quota, by whichever API process they come."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from api_builders import NOW, SIMPLE, Caller, Served
from claim_builders import a_code, claim
from fleet_builders import a_template
from support.together import together
from token_issuer import OIDC

from api.app import create_app
from api.http import quotas as module
from sandbox.text import argument_names
from servioticy.settings import Settings, changed
from servioticy.storage.quotas import PostgresQuotas

AT_ONCE = 24
TWO = {"streams": dict.fromkeys("ab", SIMPLE["streams"]["a"])}


@pytest.fixture
def processes(served: Served) -> list[Served]:
    """Two, each of which knows only what it has counted itself."""
    return [served, another(served)]


def another(served: Served) -> Served:
    settings = changed(Settings(), **OIDC)
    app = create_app(served.platform.ports, settings, lambda: NOW, argument_names)
    return Served(app, served.platform)


def give(processes: list[Served], quota: str, most: int) -> None:
    """Let alice have so much, and let the API know it now and not in some seconds."""
    PostgresQuotas(processes[0].platform.database).give("alice", quota, most)
    for each in processes:
        each.app.extensions["servioticy"].quotas._known.clear()


def callers(processes: list[Served], token: str, count: int = AT_ONCE) -> list[Caller]:
    apps = [processes[each % len(processes)].app for each in range(count)]
    return [Caller(app.test_client(), token) for app in apps]


def statuses(asked: list[Any]) -> Counter[int]:
    return Counter(each.status_code for each in together(asked))


def used(processes: list[Served], caller: Caller, name: str) -> int:
    rows = caller.ask("GET", "/quotas").get_json()["quotas"]
    (found,) = [each["used"] for each in rows if each["name"] == name]
    return int(found)


@pytest.mark.parametrize(
    ("quota", "most", "document", "made"),
    [("documents", 7, SIMPLE, 7), ("streams", 11, TWO, 5), ("streams", 10, TWO, 5)],
)
def test_service_objects_end_exactly_at_the_border(
    processes: list[Served], alice: Caller, quota: str, most: int, document: Any, made: int
) -> None:
    give(processes, quota, most)
    neighbour = processes[1].tenant("neighbour")

    def create(caller: Caller) -> Any:
        return lambda: caller.ask("POST", "/", json=document)

    mine = [create(each) for each in callers(processes, alice.token)]
    found = together([*mine, create(neighbour)])

    assert Counter(each.status_code for each in found[:-1]) == {201: made, 429: AT_ONCE - made}
    assert found[-1].status_code == 201
    assert len(alice.ask("GET", "/").get_json()) == made
    # What has gone makes room for as many.
    gone = alice.ask("GET", "/").get_json()[:2]
    for each in gone:
        assert alice.ask("DELETE", f"/{each}").status_code == 204
    assert statuses([create(each) for each in callers(processes, alice.token)])[201] == 2


def test_streams_of_new_versions_end_exactly_at_the_border(
    processes: list[Served], alice: Caller
) -> None:
    """Ten objects of a stream each want a second one, and two may have it."""
    objects = [alice.create() for _ in range(10)]
    give(processes, "streams", 12)

    found = statuses(
        [
            lambda caller=caller, so=so: caller.ask("PUT", f"/{so}", json=TWO)
            for caller, so in zip(callers(processes, alice.token, 10), objects, strict=True)
        ]
    )

    assert found == {200: 2, 429: 8}
    assert used(processes, alice, "streams") == 12


def test_jobs_claims_and_requests_share_what_is_left(
    processes: list[Served], alice: Caller
) -> None:
    """By whatever way one is made, together they are as many as there may be."""
    template = a_template(alice)
    code = a_code(alice, template, uses=20)
    give(processes, "documents", 9)
    path = f"/templates/{template}/objects"
    jobs, plain = (callers(processes, alice.token, 6) for _ in range(2))

    found = together(
        [lambda each=each: each.ask("POST", "/", json=SIMPLE) for each in plain]
        + [lambda each=each: each.ask("POST", path, json=[{"room": "a"}] * 2) for each in jobs]
        + [lambda n=n: claim(processes[n % 2], code, f"room {n}") for n in range(6)]
    )

    made = Counter(each.status_code for each in found)
    assert made.keys() <= {201, 202, 429}
    assert made[201] + 2 * made[202] == used(processes, alice, "documents")
    # A job of two does not fit into what may be left.
    assert 8 <= used(processes, alice, "documents") <= 9


def test_jobs_are_counted_though_each_process_knows_of_much_room(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what there may be many of, a process counts single ones by what it knows."""
    monkeypatch.setattr(module, "MANY", 20)
    path = f"/templates/{a_template(alice)}/objects"
    apps = [another(served) for _ in range(3)]
    give(apps, "documents", 20)
    clients = callers(apps, alice.token, 3)
    for each in clients:
        each.create()

    found = [each.ask("POST", path, json=[{"room": "a"}] * 6).status_code for each in clients]

    assert found == [202, 202, 429]


@pytest.mark.parametrize("quota", ["subscriptions", "members"])
def test_so_do_subscriptions_and_members(
    processes: list[Served], alice: Caller, quota: str
) -> None:
    so = alice.create()
    give(processes, quota, 3)
    path = "/members" if quota == "members" else f"/{so}/streams/a/subscriptions"

    def wanted(number: int) -> dict[str, Any]:
        if quota == "members":
            return {"subject": f"person {number}", "role": "viewer"}
        return {"callback": "pull"}

    found = statuses(
        [
            lambda caller=caller, n=n: caller.ask("POST", path, json=wanted(n))
            for n, caller in enumerate(callers(processes, alice.token, 12))
        ]
    )

    assert found == {201: 3, 429: 9}
