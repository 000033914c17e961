"""Who has used up a quota is turned away in the event loop, and told which."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from edge_builders import QUICK, Serving, Told
from memory import MemoryPlatform
from waiting import until

from api.edge.pools import Busy
from api.edge.turning_away import TurningAway
from ingest.updates import LARGE_BYTES
from servioticy.domain.known_tokens import share_of
from servioticy.domain.quotas import Exceeded, Quota, quotas
from servioticy.settings import Settings, changed

ALL = quotas(Settings())
UPDATES = Exceeded(ALL["updates"]._replace(most=5), 1)
READS = Exceeded(ALL["read-seconds"]._replace(most=5), 60)


class Known:
    """Of some tenants that they have used up their updates, and what they may have."""

    def __init__(self) -> None:
        self.over: set[int] = set()
        self.waiting: dict[int, int] = {}
        self.over_reading: set[int] = set()
        self.read: dict[int, float] = {}

    def beyond(self, tenant: int) -> Exceeded | None:
        return UPDATES if tenant in self.over else None

    def beyond_reading(self, tenant: int) -> Exceeded | None:
        return READS if tenant in self.over_reading else None

    def has_read(self, tenant: int, seconds: float) -> None:
        self.read[tenant] = self.read.get(tenant, 0.0) + seconds

    def most(self, tenant: int, name: str) -> Quota:
        quota = ALL[name]
        return quota._replace(most=self.waiting.get(tenant, quota.most))


def test_only_updates_are_turned_away_and_only_of_whom_it_is_known() -> None:
    known = Known()
    known.over = {7}
    turning_away = TurningAway(known, 200)

    for kind in ("updates", "batches"):
        with pytest.raises(Busy) as raised:
            turning_away.check(share_of(7), kind)
        assert (raised.value.status, raised.value.exceeded) == (429, UPDATES)
    turning_away.check(share_of(7), "reads")
    turning_away.check(share_of(8), "updates")
    turning_away.check(("unconfirmed", 7), "updates")
    turning_away.check(("address", "::1"), "updates")


def test_reads_are_turned_away_of_who_has_read_too_much_but_for_what_tells_so() -> None:
    known = Known()
    known.over_reading = {7}
    turning_away = TurningAway(known, 200)

    with pytest.raises(Busy) as raised:
        turning_away.check(share_of(7), "reads", "/o/streams/s")
    with pytest.raises(Busy):
        turning_away.check(share_of(7), "long", "/o/streams/s/search")
    assert (raised.value.status, raised.value.exceeded) == (429, READS)
    for path in ("/quotas", "/usage/", "/private/health"):
        turning_away.check(share_of(7), "reads", path)
    turning_away.check(share_of(8), "reads", "/o/streams/s")
    for kind in ("updates", "batches", "changes"):
        turning_away.check(share_of(7), kind, "/o/streams/s")


def test_how_many_requests_wait_is_the_tenants_own() -> None:
    known = Known()
    known.waiting = {7: 3}
    turning_away = TurningAway(known, 200)

    assert turning_away.longest_of(share_of(7)) == 3
    assert turning_away.longest_of(share_of(8)) == ALL["requests-waiting"].most
    assert turning_away.longest_of(("address", "::1")) == 200


@pytest.fixture
def app() -> Told:
    return Told()


@pytest.fixture
def known() -> Known:
    return Known()


@pytest.fixture
def serving(app: Told, known: Known) -> Iterator[Serving]:
    settings = changed(QUICK, max_body_bytes=LARGE_BYTES, api_batch_threads=4)
    found = Serving(settings, app, MemoryPlatform(), known)
    yield found
    app.gate.set()
    found.stop()


def told(answer: Any) -> tuple[int, str, str]:
    body = json.loads(answer.read())
    assert answer.headers["Retry-After"] == "1"
    return answer.status, body["quota"]["name"], answer.headers["RateLimit-Policy"]


def test_a_refused_update_reaches_no_thread_and_its_connection_goes_on(
    serving: Serving, app: Told, known: Known
) -> None:
    serving.introduce("a", "b")
    known.over = {hash("a")}
    before = len(app.inside)
    connection = serving.send("/o/streams/s", "a", "PUT")
    assert told(connection.getresponse()) == (429, "updates", '"updates";q=5;w=1')
    assert len(app.inside) == before

    known.over = set()
    connection.request("PUT", "/o/streams/s", headers={"Authorization": "a"})

    assert connection.getresponse().status == 200
    assert serving.ask("/o/streams/s", "b", "PUT").status == 200


def test_large_updates_that_wait_for_the_log_keep_no_small_one_and_no_other_tenant_from_it(
    serving: Serving, app: Told, known: Known
) -> None:
    """However many one tenant sends: they wait, and too many of them are told as a quota."""
    serving.introduce("a", "b")
    known.waiting = {hash("a"): 1}
    app.blocks = {"large"}

    def put(path: str, token: str, size: int) -> Any:
        connection = serving.connection()
        connection.request("PUT", path, b"x" * size, {"Authorization": token})
        return connection

    before = len(app.inside)
    held = [put("/o/streams/large", "a", LARGE_BYTES) for _ in range(2)]
    until(lambda: len(app.inside) == before + 2)
    held.append(put("/o/streams/large", "a", LARGE_BYTES))
    refused = [put("/o/streams/large", "a", LARGE_BYTES) for _ in range(2)]
    assert [told(each.getresponse()) for each in refused] == [
        (429, "requests-waiting", '"requests-waiting";q=1')
    ] * 2

    assert put("/o/streams/small", "a", LARGE_BYTES - 1).getresponse().status == 200
    assert put("/o/streams/small", "b", LARGE_BYTES).getresponse().status == 200
    app.gate.set()
    assert [each.getresponse().status for each in held] == [200] * 3


def test_too_many_waiting_requests_are_told_as_a_quota(
    serving: Serving, app: Told, known: Known
) -> None:
    serving.introduce("a")
    known.waiting = {hash("a"): 1}
    held = [serving.send("/block", "a") for _ in range(3)]

    answers = [serving.send("/block", "a") for _ in range(2)]
    found = [told(each.getresponse()) for each in answers]

    assert found == [(429, "requests-waiting", '"requests-waiting";q=1')] * 2
    app.gate.set()
    assert [each.getresponse().status for each in held] == [200] * 3
