"""What a tenant has measured of its own streams by the minute, and how far that goes."""

from __future__ import annotations

from typing import Any

import pytest
from api_builders import Caller, Platform, Served
from quota_builders import given

from api.app import create_app
from api.resources.monitoring import KEPT_MS, MINUTE_MS, PAGE_ROWS
from sandbox.text import argument_names
from servioticy.domain.model import StreamRef
from servioticy.ports.accounts import Use
from servioticy.settings import Settings
from servioticy.storage.quotas import PostgresQuotas

__all__ = ["given"]

NOW_SQL = "SELECT this_minute()"


@pytest.fixture
def served(backend: Platform) -> Served:
    """With Postgres's own clock: it says which minute it is."""
    database = backend.database

    def now() -> float:
        ((milliseconds,),) = database.rows("SELECT extract(epoch FROM now()) * 1000")
        return float(milliseconds) / 1000

    return Served(create_app(backend.ports, Settings(), now, argument_names), backend)


def used(served: Served, so: str, stream: str = "a", **what: Any) -> None:
    """Let the pipeline account for what a stream has used."""
    tenant = served.platform.stream(so).tenant
    served.platform.store.account([Use(tenant, StreamRef(so, stream), tenant, **what)])


def made(who: Caller, so: str, stream: str = "a", **more: Any) -> str:
    wanted = {"serviceObject": so, "stream": stream, **more}
    answer = who.ask("POST", "/monitoring/aspects", json=wanted)
    assert answer.status_code == 201, answer.text
    id_: str = answer.get_json()["id"]
    assert answer.headers["Location"].endswith(f"/monitoring/aspects/{id_}")
    return id_


def told(who: Caller, aspect: str, what: str, query: str = "") -> Any:
    answer = who.ask("GET", f"/monitoring/aspects/{aspect}/{what}{query}")
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def test_what_computations_take_is_measured_from_then_on(served: Served, alice: Caller) -> None:
    so = alice.create()
    used(served, so, computations={"emitted": 5}, microseconds=999)
    aspect = made(alice, so, purpose="heating")
    assert told(alice, aspect, "series")["data"] == []
    used(served, so, rows=2, bytes=90, computations={"emitted": 2}, microseconds=3000)
    used(served, so, computations={"emitted": 1, "script-error": 1, "stale": 4}, microseconds=1000)

    minutes = told(alice, aspect, "series")["data"]
    summary = told(alice, aspect, "summary")
    assert sum(each["storedUpdates"] for each in minutes) == summary["storedUpdates"] == 2
    assert summary["computations"] == {"emitted": 3, "script-error": 1, "stale": 4}
    assert summary["processorSeconds"] == pytest.approx(0.004)
    assert summary["eachSeconds"]["mean"] == pytest.approx(0.001)
    assert summary["storedBytes"] == 90
    assert summary["minutes"] == len(minutes)
    shown = alice.ask("GET", f"/monitoring/aspects/{aspect}").get_json()
    assert shown == {
        "id": aspect,
        "serviceObject": so,
        "stream": "a",
        "purpose": "heating",
        "createdAt": shown["createdAt"],
    }
    assert alice.ask("GET", "/monitoring/aspects").get_json() == {"data": [shown]}


def test_nothing_is_measured_without_an_aspect_or_once_it_has_ended(
    served: Served, alice: Caller
) -> None:
    so = alice.create()
    used(served, so, computations={"emitted": 1}, microseconds=5)
    assert minutes_kept(served) == 0
    aspect = made(alice, so)
    used(served, so, computations={"emitted": 1}, microseconds=5)
    assert minutes_kept(served) > 0
    path = f"/monitoring/aspects/{aspect}"
    assert alice.ask("DELETE", path).status_code == 204
    assert minutes_kept(served) == 0
    used(served, so, computations={"emitted": 1}, microseconds=5)

    assert minutes_kept(served) == 0
    for method, place in (("DELETE", path), ("GET", path), ("GET", f"{path}/series")):
        assert alice.ask(method, place).status_code == 404


def minutes_kept(served: Served) -> int:
    ((count,),) = served.platform.database.rows("SELECT count(*) FROM aspect_minutes")
    return int(count)


def test_of_several_minutes_a_summary_tells_how_they_lie(served: Served, alice: Caller) -> None:
    so = alice.create()
    aspect = made(alice, so)
    ((minute,),) = served.platform.database.rows(NOW_SQL)
    served.platform.database.rows(
        "INSERT INTO aspect_minutes"
        " SELECT %(tenant)s, %(aspect)s, %(minute)s - n * 60000, 0, 0, n * 1000000,"
        '        \'{"emitted": 1, "late": 1}\''
        "   FROM generate_series(1, 20) AS n",
        {"tenant": served.platform.stream(so).tenant, "aspect": aspect, "minute": minute},
    )
    summary = told(alice, aspect, "summary")
    some = told(alice, aspect, "series", f"?from={minute - 5 * MINUTE_MS}&to={minute}")

    assert summary["minutes"] == 20
    assert summary["eachSeconds"] == {
        "mean": 10.5,
        "least": 1.0,
        "middle": 10.0,
        "p95": 19.0,
        "most": 20.0,
    }
    assert [each["eachSeconds"] for each in some["data"]] == [5.0, 4.0, 3.0, 2.0, 1.0]
    assert (some["from"], some["to"]) == (minute - 5 * MINUTE_MS, minute)


def test_a_day_is_kept(served: Served, alice: Caller) -> None:
    """To the minute; older ones go as others come, and are not told before."""
    so = alice.create()
    aspect = made(alice, so)
    database = served.platform.database
    ((minute,),) = database.rows(NOW_SQL)
    for back in (KEPT_MS + MINUTE_MS * 5, KEPT_MS - MINUTE_MS * 5):
        database.rows(
            "INSERT INTO aspect_minutes VALUES (%(t)s, %(a)s, %(m)s, 1, 1, 1, '{}')",
            {"t": served.platform.stream(so).tenant, "a": aspect, "m": minute - back},
        )
    series = told(alice, aspect, "series", "?from=0")
    assert len(series["data"]) == 1
    used(served, so, computations={"stale": 1})

    assert minutes_kept(served) == 2
    assert told(alice, aspect, "summary")["eachSeconds"] is None


def test_of_others_nothing_is_measured_or_told(served: Served, alice: Caller, bob: Caller) -> None:
    so = alice.create()
    aspect = made(alice, so)
    path = f"/monitoring/aspects/{aspect}"
    wanted = {"serviceObject": so, "stream": "a"}

    assert bob.ask("POST", "/monitoring/aspects", json=wanted).status_code == 404
    assert bob.ask("GET", "/monitoring/aspects").get_json() == {"data": []}
    for method, place in (
        *(("GET", path), ("DELETE", path)),
        *(("GET", f"{path}/series"), ("GET", f"{path}/summary")),
    ):
        assert bob.ask(method, place).status_code == 404
    assert alice.ask("GET", path).status_code == 200


def test_a_stream_is_measured_once_and_so_many_are(
    served: Served, alice: Caller, given: PostgresQuotas
) -> None:
    given.give("alice", "aspects", 2)
    so, other, third = (alice.create() for _ in range(3))
    aspect = made(alice, so)
    again = alice.ask("POST", "/monitoring/aspects", json={"serviceObject": so, "stream": "a"})
    assert again.status_code == 409
    made(alice, other)
    wanted = {"serviceObject": third, "stream": "a"}
    refused = alice.ask("POST", "/monitoring/aspects", json=wanted)
    assert refused.status_code == 429
    assert "streams that are measured" in refused.text
    assert alice.ask("DELETE", f"/monitoring/aspects/{aspect}").status_code == 204

    made(alice, third)


@pytest.mark.parametrize(
    ("wanted", "status", "pointer"),
    [
        ({"stream": "a"}, 400, ""),
        ({"serviceObject": 5, "stream": "a"}, 400, "/serviceObject"),
        ({"serviceObject": "SO", "stream": "a", "purpose": "x" * 101}, 400, "/purpose"),
        ({"serviceObject": "SO", "stream": "a", "purpose": "\0"}, 400, "/purpose"),
        ({"serviceObject": "SO", "stream": "a", "rate": 1}, 400, "/rate"),
        ({"serviceObject": "SO", "stream": "nothing"}, 404, None),
        ({"serviceObject": "nobody", "stream": "a"}, 404, None),
        ({"serviceObject": "SO", "stream": "a\0"}, 400, "/stream"),
    ],
)
def test_what_is_no_aspect_is_refused_with_its_place(
    wanted: dict[str, Any], status: int, pointer: str | None, alice: Caller
) -> None:
    so = alice.create()
    wanted = {name: so if value == "SO" else value for name, value in wanted.items()}
    answer = alice.ask("POST", "/monitoring/aspects", json=wanted)

    assert answer.status_code == status, answer.text
    if pointer is not None:
        assert answer.get_json().get("pointer", "") == pointer


@pytest.mark.parametrize("query", ["?from=x", "?from=7&to=7", "?to=-1"])
def test_a_span_that_is_none_is_refused(query: str, alice: Caller) -> None:
    aspect = made(alice, alice.create())

    answer = alice.ask("GET", f"/monitoring/aspects/{aspect}/series{query}")
    assert answer.status_code == 400


def test_a_list_comes_in_pages(served: Served, alice: Caller, given: PostgresQuotas) -> None:
    given.give("alice", "aspects", 1000)
    streams = {f"s{n}": {"channels": {"x": {"type": "number"}}} for n in range(PAGE_ROWS + 1)}
    so = alice.create({"streams": streams})
    ids = {made(alice, so, name) for name in streams}
    first = alice.ask("GET", "/monitoring/aspects").get_json()
    second = alice.ask("GET", f"/monitoring/aspects?after={first['next']}").get_json()

    assert {each["id"] for each in first["data"] + second["data"]} == ids
    assert len(second["data"]) == 1
    assert "next" not in second


def test_a_minute_of_an_aspect_that_ended_meanwhile_goes_with_the_next(
    served: Served, alice: Caller
) -> None:
    so = alice.create()
    tenant = served.platform.stream(so).tenant
    served.platform.database.rows(
        "INSERT INTO aspect_minutes VALUES (%(t)s, 'gone', 0, 1, 1, 1, '{}')", {"t": tenant}
    )
    made(alice, so)

    assert minutes_kept(served) == 0
