"""A deleted tenant: all of it goes, nobody else's, and the tenant's row is the last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import Thread
from typing import Any

import pytest
from api_builders import SIMPLE, Caller, Served
from contract_world import a_world
from departing import compute, turns
from waiting import until

from api.background import departures
from servioticy.domain.model import StreamRef
from servioticy.domain.tokens import digest
from servioticy.errors import Rejected
from servioticy.ports.addresses import Lookup
from servioticy.ports.partition_store import Batch, StoredState, StoredVerdict, Use
from servioticy.ports.usage import Given
from servioticy.storage.database import Database
from servioticy.storage.queries import queries
from servioticy.storage.roles import Role
from servioticy.storage.tenants import PostgresTenants
from servioticy.storage.usage import PostgresUsage
from servioticy.tools.command import cli

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


def tenant_of(served: Served, caller: Caller) -> int:
    found = served.platform.ports.tenants.tenant_of(caller.token)
    assert found is not None
    return found


@pytest.fixture
def going(served: Served) -> Caller:
    """A tenant with something of every kind."""
    return a_world(served).tenant


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
    assert served.platform.database.rows("SELECT name FROM tenants ORDER BY name") == [("bob",)]


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


MARKER = "k9-of-the-harbour"
OWN_WORDS = {
    "service_objects": "a component is called by one of those that were first in it",
    "definitions": "whoever reads a stream names it in its own document",
    "states": "a composite keeps which updates it was made from, by the names in that document",
    "verdicts": "how a composite ended names what woke it, as that document does",
}
"""Where a tenant that read another one's streams keeps their ids and names, and why."""


def mentions(served: Served, words: Iterable[str]) -> set[tuple[str, str]]:
    """The columns with text in them, of whatever type, that hold one of the words anywhere."""
    database = served.platform.database
    columns = database.rows(
        "SELECT relname, attname, atttypid = 'bytea'::regtype"
        "  FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
        "   AND attnum > 0 AND NOT attisdropped AND atttypid = ANY("
        "       '{text,json,jsonb,bytea,text[]}'::regtype[])"
    )
    assert len(columns) > 100
    found = set()
    for table, column, is_bytes in columns:
        word = "convert_to(word, 'UTF8')" if is_bytes else "word"
        text = f'"{column}"' if is_bytes else f'"{column}"::text'
        rows = database.rows(
            f"SELECT 1 FROM {table}, unnest(%(words)s::text[]) AS words (word)"
            f" WHERE position({word} IN {text}) > 0 LIMIT 1",
            {"words": list(words)},
        )
        if rows:
            found.add((table, column))
    return found


def used_by(served: Served, other: Caller, source: StreamRef, grant: str) -> str:
    """Let another tenant read a stream in every way; the id of what it derives."""
    channel = {"type": "string", "current-value": "{$g.channels.x.current-value}"}
    reading = {
        "streams": {"b": {"channels": {"x": channel}}},
        "groups": {"g": {"soIds": [source.service_object], "stream": source.stream}},
    }
    derived = other.create(reading)
    path = f"/{source.service_object}/streams/{source.stream}/subscriptions"
    wanted = {"callback": "http", "destination": "http://example.org/"}
    made = other.ask("POST", path, json=wanted).get_json()["id"]
    served.platform.database.rows("UPDATE grants SET active = true")
    owner = served.platform.stream(source.service_object, source.stream).tenant
    stream, reader = served.platform.stream(derived, "b"), tenant_of(served, other)
    store = served.platform.store
    last = f'{{"trigger":"{source}"}}'.encode()
    next_offset = store.begin(0)[0]
    store.store(
        Batch(
            0,
            next_offset,
            next_offset,
            0,
            verdicts=[StoredVerdict(*stream, "filtered", 1, last)],
            states=[StoredState(*stream, f'{{"{source}":1}}'.encode())],
        )
    )
    store.end(0)
    made_of_it = {"computations": {"emitted": 2}, "microseconds": 7}
    store.account([Use(reader, StreamRef(derived, "b"), owner, source, **made_of_it)])
    given = Given(reader, owner, *source)
    PostgresUsage(served.platform.database).deliver({given: 3})
    assert grant in [each["grant"] for each in usage_of(other)]
    served.platform.database.rows(
        "INSERT INTO dead_deliveries (subscription_id, tenant_id, delivery_id, service_object,"
        " stream, timestamp, document, reason, died_at)"
        " VALUES (%(id)s, %(reader)s, 'd', %(service_object)s, %(stream)s, 5, %(body)s, 'no', 1)",
        {"id": made, "reader": reader, **source._asdict(), "body": f'"{MARKER}"'},
    )
    return derived


def usage_of(who: Caller) -> list[dict[str, Any]]:
    answer = who.ask("GET", "/usage?from=0&to=9007199254740991&by=grant")
    found: list[dict[str, Any]] = answer.get_json()["data"]
    return found


def test_nobody_keeps_its_names_or_what_it_has_sent(
    served: Served, going: Caller, bob: Caller
) -> None:
    """What others have to pay for stays, and names nothing of it."""
    channel = {"type": "string", "unit": MARKER}
    document = {"streams": {"k9-stream": {"channels": {"x": channel}}}, "description": MARKER}
    so = going.create(document)
    source = StreamRef(so, "k9-stream")
    update = {"channels": {"x": {"current-value": MARKER}}, "lastUpdate": 5}
    assert going.ask("PUT", f"/{so}/streams/k9-stream", json=update).status_code == 202
    tenant = bob.ask("GET", "/grants").get_json()["tenant"]
    given = going.ask("POST", f"/{so}/grants", json={"tenant": tenant}).get_json()["id"]
    served.store()
    database = served.platform.database
    sql = "SELECT public_id FROM tenants WHERE name = 'examples' UNION SELECT service_objects.id"
    sql += " FROM service_objects JOIN tenants AS t ON t.id = tenant_id WHERE t.name = 'examples'"
    ids = [id_ for (id_,) in database.rows(sql)]
    derived = used_by(served, bob, source, given)
    assert ("updates", "document") in {
        (t.replace("stored_", ""), c) for t, c in mentions(served, [MARKER])
    }

    served.platform.ports.tenants.delete_tenant("examples")
    turns(served)
    compute(served)
    turns(served)

    assert mentions(served, [MARKER, "examples", "bob of the examples"]) == set()
    left = mentions(served, [*ids, "k9-stream"])
    assert {table for table, _ in left} == OWN_WORDS.keys()
    assert usage_of(bob)[0]["deliveries"] == 3
    assert [each["grant"] for each in usage_of(bob)] == [None]
    rows = "SELECT service_object, stream, provider_id, grant_id, deliveries FROM usage_hours"
    assert database.rows(f"{rows} ORDER BY deliveries") == [
        (derived, "b", 0, "", 0),
        ("", "", 0, "", 3),
    ]


def test_what_was_delivered_of_it_at_last_names_nothing_either(
    served: Served, bob: Caller
) -> None:
    """Delivery tells of it some seconds late; by then the tenant may have gone."""
    accounts, gone = PostgresUsage(served.platform.database), 10**6
    counted = {Given(tenant_of(served, bob), gone, "so", name): 2 for name in ("a", "b")}
    accounts.deliver(counted)
    accounts.deliver(counted)

    rows = "SELECT service_object, stream, deliveries FROM usage_hours"
    assert served.platform.database.rows(rows) == [("", "", 8)]
