"""Who sees the state of the whole platform, and what of its tenants."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import NOW, Caller, Platform, Served
from console_visits import csrf, signed_in

from api.app import create_app
from api.platform.slowest import HOUR, ROWS
from api.platform.telling import Programs
from sandbox.text import argument_names
from servioticy.domain.model import StreamRef
from servioticy.domain.records import AcquireRecord
from servioticy.ports.accounts import Use
from servioticy.settings import Settings, changed

PATHS = [
    "/platform",
    "/platform/slowest",
    "/platform/rebalance",
    "/platform/monitoring",
    "/platform/applications",
    "/platform/traces",
    f"/platform/traces/{'a' * 32}",
]


@pytest.fixture
def operator(served: Served) -> Caller:
    return served.tenant("examples")


@pytest.mark.parametrize("path", PATHS)
def test_admins_of_the_tenant_that_is_named_and_nobody_else(
    operator: Caller, alice: Caller, path: str
) -> None:
    told = operator.ask("GET", path)
    assert told.status_code == 200, told.text

    answer = alice.ask("GET", path)
    assert (answer.status_code, "operator_tenant" in answer.text) == (403, True)
    assert not {"programs", "streams", "pointcuts"} & answer.get_json().keys()
    made = operator.ask("POST", "/tokens", json={"name": "reader", "rights": ["list", "read"]})
    reader = Caller(operator.client, made.get_json()["token"])
    assert reader.ask("GET", path).status_code == 403


@pytest.mark.parametrize("path", PATHS)
def test_without_the_setting_nobody_is_it(backend: Platform, path: str) -> None:
    app = create_app(backend.ports, Settings(), lambda: NOW, argument_names)
    assert Served(app, backend).tenant("examples").ask("GET", path).status_code == 403


def test_it_tells_of_programs(operator: Caller) -> None:
    told = operator.ask("GET", "/platform").get_json()
    assert {each["name"] for each in told["programs"]} >= {"api", "pipeline"}


def test_who_presses_is_called_by_its_name(
    served: Served, operator: Caller, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Metrics have numbers; a tenant that has gone meanwhile has no name any more."""
    tenant = tenant_of(served, alice)
    pressing = [
        {"tenant": each, "partition": 1, "putOff": 9, "overSeconds": 0.5} for each in (tenant, 999)
    ]
    told = {**Programs(Settings(), nothing).told(), "pressing": pressing}
    monkeypatch.setattr(Programs, "told", lambda _self: told)

    found = operator.ask("GET", "/platform").get_json()["pressing"]
    assert found == [{"tenant": "alice", "partition": 1, "putOff": 9, "overSeconds": 0.5}]
    page = signed_in(served, operator.token).get("/console/platform").text
    assert "0.50 s" in page
    assert "alice" in page
    monkeypatch.setattr(
        Programs,
        "told",
        lambda _self: {**told, "partitions": [{"partition": 1, "behind": 7, "putOff": 9}]},
    )
    page = signed_in(served, operator.token).get("/console/platform/partitions").text
    assert '<td data-name="Who presses there"><span>alice</span>' in page
    assert '<span data-of="1" data-cell="behind">7</span>' in page


def test_the_slowest_come_first(served: Served, operator: Caller, alice: Caller) -> None:
    """By all that their code has taken, or by what it takes each time."""
    theirs, own = tenant_of(served, alice), tenant_of(served, operator)
    account(
        served,
        Use(theirs, StreamRef("hall", "c"), theirs, computations=ran(100), microseconds=200_000),
        Use(theirs, StreamRef("hall", "c"), own, computations=ran(20), microseconds=40_000),
        Use(own, StreamRef("own", "c"), own, computations=ran(10), microseconds=100_000),
        Use(own, StreamRef("own", "late"), own, microseconds=5_000),
        Use(own, StreamRef("own", "raw"), own, updates=7),
    )

    def told(by: str) -> list[tuple[Any, ...]]:
        found = operator.ask("GET", f"/platform/slowest?by={by}").get_json()["streams"]
        return [(each["tenant"], each["stream"], each.get("eachSeconds")) for each in found]

    hall, mine = ("alice", "c", 0.002), ("examples", "c", 0.01)
    assert told("total") == [hall, mine, ("examples", "late", None)]
    assert told("each") == [mine, hall, ("examples", "late", None)]
    page = signed_in(served, operator.token).get("/console/platform?by=each").text
    assert page.index("10 ms") < page.index("2 ms")
    assert "alice" in page


def test_of_the_present_hour_and_the_one_before(backend: Platform) -> None:
    settings = changed(Settings(), operator_tenant="examples")
    served = Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)
    operator = served.tenant("examples")
    tenant, begun = tenant_of(served, operator), int(NOW * 1000) // HOUR * HOUR
    for number, stream in enumerate(("now", "before", "old")):
        use = Use(tenant, StreamRef("own", stream), tenant, microseconds=10 + number)
        backend.store.account([use])
        backend.database.rows(
            "UPDATE usage_hours SET hour = %(hour)s WHERE stream = %(stream)s",
            {"hour": begun - number * HOUR, "stream": stream},
        )

    told = operator.ask("GET", "/platform/slowest").get_json()
    assert told["from"] == begun - HOUR
    assert [each["stream"] for each in told["streams"]] == ["before", "now"]


def test_some_are_told_however_many_there_are(served: Served, operator: Caller) -> None:
    tenant = tenant_of(served, operator)
    names = [f"c{number}" for number in range(3 * ROWS)]
    account(
        served,
        *(Use(tenant, StreamRef("so", name), tenant, microseconds=100) for name in names),
    )
    assert len(operator.ask("GET", "/platform/slowest").get_json()["streams"]) == ROWS


def test_what_it_is_ordered_by_is_one_of_two(operator: Caller) -> None:
    answer = operator.ask("GET", "/platform/slowest?by=name")
    assert (answer.status_code, "total, each" in answer.text) == (400, True)


def test_what_is_busy_moves_to_where_nothing_is(served: Served, operator: Caller) -> None:
    """GET only tells what POST does, of as much as is asked for; the page has both."""
    made = [operator.create() for _ in range(2)]
    place = partition_of(served, made[0])
    owner, ref = tenant_of(served, operator), [StreamRef(each, "a") for each in made]
    account(served, Use(owner, ref[0], owner, microseconds=9_000_000))
    beside = [operator.create() for _ in range(6)]
    there = [e for e in beside if partition_of(served, e) == place]
    more = [Use(owner, StreamRef(e, "a"), owner, microseconds=9_000_000) for e in there]
    account(served, *more)

    planned = operator.ask("GET", "/platform/rebalance?moves=1").get_json()
    assert (len(planned["moves"]), planned["moved"]) == (1, [])
    assert planned["moves"][0]["from"] == place
    console = signed_in(served, operator.token)
    page = console.get("/console/platform/rebalance")
    assert planned["moves"][0]["serviceObject"] in page.text
    assert operator.ask("GET", "/platform/rebalance?moves=0").status_code == 400
    assert operator.ask("POST", "/platform/rebalance?moves=101").status_code == 400
    served.platform.database.rows(  # all is in force
        "UPDATE service_objects SET active_version = version, active_change = 1000000"
    )

    done = console.post("/console/platform/rebalance", data={"csrf": csrf(console)})
    assert done.status_code == 303
    assert "moved." in console.get(done.headers["Location"]).text
    assert moved_to(served, 1 - place)


def partition_of(served: Served, id_: str) -> int:
    """Where its updates are sent."""
    return served.platform.ports.graph.nodes([id_])[id_].partition


def moved_to(served: Served, partition: int) -> list[Any]:
    return [e for _, e in served.platform.records(partition) if isinstance(e, AcquireRecord)]


def nothing(_host: str, _port: int) -> str:
    raise ConnectionRefusedError


def ran(times: int) -> dict[str, int]:
    """So many computations whose code ran, and more for which it did not."""
    return {"emitted": times - 1, "filtered": 1, "stale": 1000}


def account(served: Served, *uses: Use) -> None:
    served.platform.store.account(uses)
    served.platform.database.rows(
        "UPDATE usage_hours SET hour = %(hour)s", {"hour": int(NOW * 1000) // HOUR * HOUR}
    )


def tenant_of(served: Served, who: Caller) -> int:
    return served.platform.stream(who.create()).tenant
