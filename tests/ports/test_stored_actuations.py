"""Actuations as Postgres keeps them, held against the rules of the domain."""

from __future__ import annotations

from typing import Any

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from port_builders import Stored
from support.memory_actuations import MemoryActuations

from servioticy.domain.actuations import State
from servioticy.domain.model import ServiceObjectKey
from servioticy.ports.actuations import ActuationRequest, NewActuation, Submission
from servioticy.storage.actuations import PostgresActuations
from servioticy.storage.database import Database

pytestmark = pytest.mark.real

STREAMS = b'{"streams":{"b":{"channels":{}},"a":{"channels":{}}}'
ACTIONS = STREAMS + b',"actions":[{"name":"blink","timeout":60}]}'


@pytest.fixture
def lamp(stored: Stored) -> ServiceObjectKey:
    return stored.create("lamp", document=ACTIONS)


@pytest.fixture
def store(delivery: Database, lamp: ServiceObjectKey) -> PostgresActuations:
    return PostgresActuations(delivery)


def submit(
    database: Database, key: ServiceObjectKey, id_: str, now_ms: int, seconds: int = 1000
) -> None:
    """As the REST API does."""
    new = NewActuation(id_, {"name": "blink"}, "", seconds)
    assert PostgresActuations(database).submit(key, new, now_ms) is Submission.MADE


def test_what_is_committed_late_is_news_all_the_same(
    stored: Stored, store: PostgresActuations, lamp: ServiceObjectKey, dsn: str
) -> None:
    """A transaction may have begun long before the look that does not see it."""
    since = store.news(None, []).upto
    other = Database(dsn)
    with other.transaction():
        submit(other, lamp, "late", 1)
        submit(stored.database, lamp, "early", 1)
        since, found, _ = store.news(since, [])
        assert list(found) == [lamp]
        since, found, _ = store.news(since, [])
    since, found, _ = store.news(since, [])
    assert list(found) == [lamp]
    assert [each.id for each in store.waiting(lamp.tenant, ["lamp"], 10, 1)["lamp"]] == [
        "late",
        "early",
    ]

    for _ in range(2):
        since, found, _ = store.news(since, [])
    assert list(found) == []
    other.close()


def test_who_asks_hears_of_what_has_waited(
    stored: Stored, store: PostgresActuations, lamp: ServiceObjectKey
) -> None:
    """Of one's own only."""
    submit(stored.database, lamp, "1", 1)
    asked = [ServiceObjectKey(stored.other, "lamp"), ServiceObjectKey(stored.tenant, "x\0"), lamp]

    assert list(store.news(None, asked[:2]).service_objects) == []
    assert list(store.news(None, asked).service_objects) == [lamp]


def test_one_output_asks_once(store: PostgresActuations, lamp: ServiceObjectKey) -> None:
    asked = ActuationRequest("1", "blink", '{"x":1}')

    assert store.ask(lamp, asked, 5)
    assert store.ask(lamp, asked._replace(parameters="other"), 6)

    (found,) = store.waiting(lamp.tenant, ["lamp"], 10, 6)["lamp"]
    assert found == ("1", '{"x":1}', b'{"name":"blink","timeout":60}', 5, 60_005)


@pytest.mark.parametrize(
    ("tenant", "name", "action"),
    [(0, "lamp", "blink"), (None, "none", "blink"), (None, "lamp", "x"), (None, "l\0", "blink")],
)
def test_only_actions_that_there_are_can_be_asked_for(
    store: PostgresActuations, lamp: ServiceObjectKey, tenant: int | None, name: str, action: str
) -> None:
    key = ServiceObjectKey(lamp.tenant if tenant is None else tenant, name)

    assert not store.ask(key, ActuationRequest("1", action, ""), 5)


def test_what_cannot_be_done_is_kept_as_failed(
    stored: Stored,
    store: PostgresActuations,
    lamp: ServiceObjectKey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing that an output asks for goes without a trace."""
    monkeypatch.setattr("servioticy.storage.actuations.MOST", 1)
    assert store.ask(lamp, ActuationRequest("1", "blink", "", "too long"), 5)
    assert store.ask(lamp, ActuationRequest("2", "blink", ""), 5)
    assert store.ask(lamp, ActuationRequest("3", "blink", ""), 5)

    found = stored.database.rows("SELECT id, state, status FROM actuations ORDER BY sequence")

    assert found == [
        ("1", "failed", "failed: too long"),
        ("2", "queued", "Submitted"),
        ("3", "failed", "failed: too many wait"),
    ]


def test_what_failed_at_once_is_forgotten_before_what_a_device_got(
    stored: Stored,
    store: PostgresActuations,
    lamp: ServiceObjectKey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Outputs of an hour in which conditions rest leave the device its log, but for one entry."""
    monkeypatch.setattr("servioticy.storage.actuations.KEPT", 3)
    for n in range(3):
        submit(stored.database, lamp, f"got {n}", n)
    store.moved(lamp.tenant, ["got 0", "got 1"], State.DONE, 5)
    store.failed(lamp, "got 2", "by its callback", 5)

    def left() -> list[str]:
        rows = stored.database.rows("SELECT id FROM actuations ORDER BY sequence")
        return [id_ for (id_,) in rows]

    for n in range(4):
        assert store.ask(lamp, ActuationRequest(f"rested {n}", "blink", "", "used up"), 6)
        assert left() == ["got 1", "got 2", f"rested {n}"]

    submit(stored.database, lamp, "later", 7)
    assert left() == ["got 1", "got 2", "later"]


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.sampled_from([1, 100])),
        st.tuples(
            st.just("move"),
            st.integers(0, 9),
            st.sampled_from([State.SENT, State.DELIVERED, State.DONE, State.FAILED]),
        ),
        st.tuples(
            st.just("report"),
            st.integers(0, 9),
            st.sampled_from(["x", "done", "failed"]),
            st.booleans(),
        ),
        st.tuples(st.just("pass"), st.integers(1, 3)),
    ),
    max_size=30,
)


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(OPERATIONS)
def test_states_go_as_the_rules_say(
    stored: Stored,
    store: PostgresActuations,
    lamp: ServiceObjectKey,
    operations: list[tuple[Any, ...]],
) -> None:
    """Whatever comes in whatever order."""
    stored.database.rows("DELETE FROM actuations")
    twin, now = MemoryActuations(), 1_000
    for name, *more in operations:
        ids = list(twin.kept)
        if name == "submit":
            id_ = f"{len(ids)}"
            submit(stored.database, lamp, id_, now, more[0])
            twin.submit(lamp, id_, now, more[0] * 1000)
        elif name == "pass":
            now += more[0] * 400
        elif ids:
            id_ = ids[more[0] % len(ids)]
            if name == "move":
                for each in (store, twin):
                    each.moved(lamp.tenant, [id_], more[1], now)
            else:
                assert store.report(lamp, id_, more[1], now, by_device=more[2])
                twin.report(id_, more[1], now, by_device=more[2])
        expected = twin.waiting(lamp.tenant, ["lamp"], 100, now).get("lamp", ())
        assert store.waiting(lamp.tenant, ["lamp"], 100, now).get("lamp", []) == [
            each._replace(description=b'{"name":"blink"}') for each in expected
        ]
    found = stored.database.rows("SELECT id, state, times FROM actuations ORDER BY sequence")
    assert found == [(id_, each.state.value, each.times) for id_, each in twin.kept.items()]


def test_devices_of_a_tenant_that_have_something_to_get(
    stored: Stored, store: PostgresActuations, lamp: ServiceObjectKey
) -> None:
    """Each once; neither those whose time is over nor those of others."""
    for id_ in ("1", "2"):
        submit(stored.database, lamp, id_, 1)

    assert store.waiting_for(lamp.tenant, 1) == [lamp]
    assert store.waiting_for(lamp.tenant, 2_000_000) == []
    assert store.waiting_for(stored.other, 1) == []


def test_of_each_device_the_first_ones_are_read(
    stored: Stored, store: PostgresActuations, lamp: ServiceObjectKey
) -> None:
    """As many of each, however many others have; nothing of another tenant's."""
    pump = stored.create("pump", document=ACTIONS)
    for id_ in ("1", "2", "3"):
        submit(stored.database, lamp, f"lamp {id_}", 1)
        submit(stored.database, pump, f"pump {id_}", 1)
    names = ["lamp", "pump", "nothing", "a\0b"]
    found = store.waiting(lamp.tenant, names, 2, 1)

    assert {name: [each.id for each in some] for name, some in found.items()} == {
        "lamp": ["lamp 1", "lamp 2"],
        "pump": ["pump 1", "pump 2"],
    }
    assert store.waiting(stored.other, names, 2, 1) == {}


def test_actuations_of_many_devices_move_at_once(
    stored: Stored, store: PostgresActuations, lamp: ServiceObjectKey
) -> None:
    pump = stored.create("pump", document=ACTIONS)
    submit(stored.database, lamp, "1", 1)
    submit(stored.database, pump, "2", 1)
    store.moved(stored.other, ["1", "2"], State.DELIVERED, 2)
    assert set(store.waiting(lamp.tenant, ["lamp", "pump"], 9, 2)) == {"lamp", "pump"}

    store.moved(lamp.tenant, ["1", "2"], State.DELIVERED, 2)
    assert store.waiting(lamp.tenant, ["lamp", "pump"], 9, 2) == {}
