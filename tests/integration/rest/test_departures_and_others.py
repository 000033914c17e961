"""What others have of a tenant that was deleted: it names nothing of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from api_builders import Caller, Served
from departing import compute, going, tenant_of, turns

from servioticy.domain.model import StreamRef
from servioticy.ports.accounts import Use
from servioticy.ports.batches import Batch, StoredState, StoredVerdict
from servioticy.ports.effects import Activate, EndInputs
from servioticy.ports.usage import Given
from servioticy.storage.usage import PostgresUsage

__all__ = ["going"]

MARKER = "k9-of-the-harbour"
OWN_WORDS = {
    "inputs_from_outside": "it stands there whether what that document names may be read",
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
    named = Activate(derived, 1, 2**40, (source,), (source,))
    store.store(Batch(0, next_offset, next_offset, 0, effect=named))
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


def ended(served: Served, reader: Caller, derived: str, source: StreamRef) -> None:
    """What comes of the record that the deletion of a stream sends to who reads it."""
    store = served.platform.store
    at = store.begin(0)[0]
    effect = EndInputs(tenant_of(served, reader), (derived,), (source,), (0, at))
    store.store(Batch(0, at, at, 0, effect=effect))
    store.end(0)


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
    before = {(t.replace("stored_", ""), c) for t, c in mentions(served, [MARKER])}
    assert before > {("updates", "document"), ("inputs_from_outside", "document")}

    served.platform.ports.tenants.delete_tenant("examples")
    turns(served)
    compute(served)
    ended(served, bob, derived, source)
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
