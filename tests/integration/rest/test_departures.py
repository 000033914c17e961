"""A deleted tenant: all of it goes, nobody else's, and the tenant's row is the last."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Thread

import pytest
from api_builders import SIMPLE, Caller, Served
from departing import compute, going, tenant_of, turns
from waiting import until

from api.background import departures
from command import cli
from servioticy.domain.tokens import digest
from servioticy.errors import Rejected
from servioticy.ports.addresses import Lookup
from servioticy.storage.database import Database
from servioticy.storage.queries import queries
from servioticy.storage.roles import Role
from servioticy.storage.tenants import PostgresTenants

__all__ = ["going"]

WAITING = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
    " AND wait_event_type = 'Lock' AND query ~ 'DELETE FROM tokens'"
)


def rows_of(served: Served, tenant: int) -> Mapping[str, int]:
    """In each table that has a tenant in each row, and any row of this one."""
    database = served.platform.database
    tables = database.rows(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND column_name = 'tenant_id'"
        " AND table_name NOT IN ('readers', 'readable_streams', 'stored_updates')"
    )
    assert len(tables) > 30
    counts = {}
    for table, column in [*tables, ("tenants", "id")]:
        sql = f"SELECT count(*) FROM {table} WHERE {column} = %(tenant)s"
        (counts[table],) = database.rows(sql, {"tenant": tenant})[0]
    return {table: count for table, count in counts.items() if count}


def test_nothing_of_it_is_left_and_nothing_of_others_gone(
    served: Served, going: Caller, bob: Caller
) -> None:
    """Whichever tables there are: a walk through the catalogue finds those that come."""
    theirs = bob.create({**SIMPLE, "public": True})
    wanted = {"callback": "http", "destination": "http://example.org/"}
    going.ask("POST", f"/{theirs}/streams/a/subscriptions", json=wanted)
    tenant, other = tenant_of(served, going), tenant_of(served, bob)
    before = rows_of(served, other)
    assert len(rows_of(served, tenant)) > 15

    assert served.platform.ports.tenants.delete_tenant("examples")
    assert going.ask("GET", "/").status_code == 403
    turns(served)
    compute(served)
    turns(served)

    assert rows_of(served, tenant) == {}
    assert rows_of(served, other) == before
    assert bob.ask("GET", f"/{theirs}").status_code == 200


def test_it_waits_for_the_pipeline(served: Served, going: Caller) -> None:
    """What the log does not say yet is not removed behind its back."""
    tenant = tenant_of(served, going)
    served.platform.ports.tenants.delete_tenant("examples")
    turns(served)

    left = rows_of(served, tenant)
    assert {"tenants", "service_objects", "streams", "updates"} <= left.keys()
    with pytest.raises(Rejected, match="is being deleted"):
        served.platform.ports.tenants.create_tenant("examples")


def test_what_it_was_granted_goes_a_piece_at_a_time(
    served: Served, going: Caller, bob: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tells both sides: all at once would be one long statement, which never ends."""
    monkeypatch.setattr(departures, "ROWS", 1)
    to = {"tenant": going.ask("GET", "/grants").get_json()["tenant"]}
    so = bob.create({**SIMPLE, "description": "granted"})
    given = {bob.ask("POST", f"/{so}/grants", json=to).get_json()["id"] for _ in range(3)}
    others = bob.ask("POST", f"/{so}/grants", json={"everyone": True}).get_json()["id"]
    tenant = tenant_of(served, going)
    served.platform.ports.tenants.delete_tenant("examples")
    turns(served)
    compute(served)

    counts, sql = [], "SELECT count(*) FROM grants WHERE grantee = %(tenant)s"
    while turns(served, most=1):
        counts += served.platform.database.rows(sql, {"tenant": tenant})[0]
    assert len(given) == 3
    assert counts[:3] == [2, 1, 0]
    assert [each["id"] for each in bob.ask("GET", "/grants").get_json()["grants"]] == [others]
    entries = bob.ask("GET", "/audit?kind=grant").get_json()["data"]
    assert {each["id"] for each in entries if each["action"] == "ended"} == given


def test_it_goes_on_wherever_it_ended(
    served: Served, going: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each turn by another process, as after kill -9, with pieces of one row."""
    monkeypatch.setattr(departures, "ROWS", 1)
    monkeypatch.setattr(departures, "SERVICE_OBJECTS", 1)
    tenant = tenant_of(served, going)
    served.platform.ports.tenants.delete_tenant("examples")
    for _ in range(2):
        while turns(served, most=1):
            pass
        compute(served)

    assert rows_of(served, tenant) == {}
    assert not served.platform.ports.tenants.delete_tenant("examples")
    assert served.tenant("examples").ask("GET", "/").get_json() == []


def test_a_token_that_is_made_meanwhile_is_good_for_nothing_and_stops_nothing(
    served: Served, going: Caller, session_dsn: str
) -> None:
    """Its request was let in before; were the token good, its holder could make the next one."""
    tenant, ports = tenant_of(served, going), served.platform.ports
    late, other = (Database(session_dsn, role=Role.API) for _ in range(2))
    deleting = Thread(target=PostgresTenants(other).delete_tenant, args=["examples"])
    with late.transaction():
        values = {"tenant": tenant, "digest": digest("late")}
        late.rows(queries("tenants")["add_token"], values)
        deleting.start()
        # It has removed those tokens that it sees, and would tell the audit log of them.
        until(lambda: served.platform.database.rows(WAITING))
    deleting.join()
    late.close()

    assert (
        Caller(going.client, "late").ask("POST", "/tokens", json={"name": "n"}).status_code == 403
    )
    assert ports.addresses.addresses([Lookup("late", None, None)]) == [None]
    assert ports.tenants.tenant_of("late") is None
    turns(served)
    compute(served)
    turns(served)
    assert rows_of(served, tenant) == {}


def test_a_group_of_another_that_read_it_reads_it_no_longer(
    served: Served, going: Caller, bob: Caller
) -> None:
    so = going.create({**SIMPLE, "public": True})
    channel = {"type": "number", "current-value": "{$g.channels.x.current-value}"}
    reading = {
        "streams": {"b": {"channels": {"x": channel}}},
        "groups": {"g": {"soIds": [so], "stream": "a"}},
    }
    derived = bob.create(reading)
    served.platform.ports.tenants.delete_tenant("examples")
    turns(served)
    compute(served)
    turns(served)

    assert bob.ask("GET", f"/{derived}").status_code == 200
    assert served.platform.database.rows("SELECT 1 FROM graph_edges") == []
    left = served.platform.database.rows("SELECT name FROM tenants")
    assert ("bob",) in left
    assert ("examples",) not in left


def test_the_command_deletes_a_tenant(
    served: Served,
    session_dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SERVIOTICY_DSN", session_dsn)
    assert cli.main(["tenant", "create", "carol"]) == 0
    token = capsys.readouterr().out.strip()
    assert served.platform.ports.tenants.tenant_of(token) is not None

    assert cli.main(["tenant", "delete", "carol"]) == 0
    assert "deleted" in capsys.readouterr().out
    assert served.platform.ports.tenants.tenant_of(token) is None
    assert cli.main(["tenant", "delete", "carol"]) == 1
    assert "there is no tenant carol" in capsys.readouterr().err
