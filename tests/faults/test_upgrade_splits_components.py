"""A store whose components reached from tenant to tenant is upgraded while its log goes on.

What the release before had stored stays, what it had accepted and not stored yet is computed by
this one: to each tenant its values go on, once each and in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from border_replays import is_over
from lone_pipeline import SECONDS, Emitted, Ground, Log, Pipeline
from old_store import Old
from running_platform import until

from servioticy.bootstrap import kafka
from servioticy.domain.records import UpdateRecord, write
from servioticy.domain.topics import Topics
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.messaging.admin import ensure_topics
from servioticy.settings import Settings, load
from servioticy.storage import migrations
from servioticy.storage.database import Database

ALICE, BOB, CAROL = 1, 2, 3
SENT_BEFORE = 30
"""By each of the two devices: every other record of the log is one's."""
STORED = 20
"""Of these, by the release before."""
EMITTED = 16
PUT_OFF = 18
"""Timestamp of bob's that had been put off, with all of his that follow."""
SENT_AFTER = 30

VALUE = '.channels.v["current-value"]'
SIMPLE = {"channels": {"v": {"type": "number"}}}

pytestmark = pytest.mark.timeout(900)


def composite(code: str) -> dict[str, Any]:
    return {"channels": {"v": {"type": "number", "current-value": code}}}


READING = {
    "copy": composite(f"function(g0){{return g0{VALUE}}}"),
    "count": composite(f"function(g0,count){{return count===null?1:count{VALUE}+1}}"),
}


def body(timestamp: int, value: int) -> bytes:
    return orjson.dumps({"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp})


def update(service_object: str, timestamp: int) -> UpdateRecord:
    return UpdateRecord(service_object, "data", timestamp, msgspec.Raw(body(timestamp, timestamp)))


def write_old_store(old: Old) -> None:
    """Alice's device and bob's are read by bob and carol: one component, of three tenants.

    Records of the log come in turns, alice's first.
    """
    old.rows("INSERT INTO tenants (name) VALUES ('alice'), ('bob'), ('carol')")
    old.create(ALICE, "device", "device", public=True, streams={"data": SIMPLE})
    bobs = {"data": SIMPLE, "double": composite(f"data=>data{VALUE}*2"), **READING}
    old.create(BOB, "bobs", "device", [("device", "data")], public=True, streams=bobs)
    old.create(CAROL, "carols", "device", [("device", "data")], streams=READING)
    old.create(CAROL, "chained", "device", [("bobs", "double")], streams=READING)
    old.rows(f"INSERT INTO progress VALUES (0, {2 * STORED}, {2 * EMITTED})")
    for number in range(STORED):
        at, offset = number + 1, 2 * number
        old.update("device", at, offset, "data", 0, body(at, at).decode())
        made = [(each, name) for each in ("bobs", "carols") for name in READING]
        for position, (reader, name) in enumerate(made, 1):
            old.update(reader, at, offset, name, position, body(at, at).decode())
        if at >= PUT_OFF:
            text = write(update("bobs", at)).decode()
            old.rows(
                "INSERT INTO put_off (log_partition, log_offset, tenant_id, service_object,"
                " record) VALUES (0, %(offset)s, %(tenant)s, 'bobs', %(text)s::bytea)",
                offset=offset + 1,
                tenant=BOB,
                text=text,
            )
            continue
        old.update("bobs", at, offset + 1, "data", 0, body(at, at).decode())
        derived = [
            ("bobs", "double", 2 * at),
            ("chained", "copy", 2 * at),
            ("chained", "count", at),
        ]
        for position, (id_, stream, value) in enumerate(derived, 1):
            old.update(id_, at, offset + 1, stream, position, body(at, value).decode())


@pytest.fixture
def settings(empty_dsn: str, real_kafka: EmbeddedKafka, topic_prefix: str) -> Settings:
    return load(
        overrides={
            "dsn": empty_dsn,
            "bootstrap_servers": real_kafka.bootstrap_servers,
            "topic_prefix": topic_prefix,
            "tenant_share": 1.0,
        }
    )


@pytest.fixture
def upgraded(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """The stores as the release before left them, and this one's schema."""
    topics = Topics(settings.log.topic_prefix)
    ensure_topics(kafka(settings), topics, settings.log.partitions)
    log = Log(settings, topics)
    for at in range(1, SENT_BEFORE + 1):
        for device in ("device", "bobs"):
            log.append(0, update(device, at))
    log.close()
    whole = migrations._files()
    monkeypatch.setattr(
        migrations, "_files", lambda: [each for each in whole if each.name < "0130"]
    )
    owner = Database(settings.store.dsn)
    migrations.migrate(owner)
    write_old_store(Old(owner))
    owner.close()
    monkeypatch.setattr(migrations, "_files", lambda: whole)
    found = Ground(settings)
    yield found
    found.close()


def values(ground: Ground, service_object: str, stream: str) -> list[tuple[int, int]]:
    """Timestamp and value of each update that is stored."""
    rows = ground.database.rows(
        "SELECT timestamp, document::text FROM updates JOIN streams ON streams.id = stream_id"
        " WHERE service_object = %(id)s AND name = %(stream)s ORDER BY timestamp",
        {"id": service_object, "stream": stream},
    )
    return [(at, json.loads(text)["channels"]["v"]["current-value"]) for at, text in rows]


def test_each_tenants_values_go_on_once_and_in_order(
    upgraded: Ground, settings: Settings, tmp_path: Path
) -> None:
    """Over one border and over two trees; what had been put off, and what was not acknowledged."""
    emitted = Emitted(upgraded)
    pipeline = Pipeline(settings, tmp_path / "log")
    last = SENT_BEFORE + SENT_AFTER

    try:
        for at in range(SENT_BEFORE + 1, last + 1):
            for device in ("device", "bobs"):
                upgraded.log.append(0, update(device, at))
        until(lambda: is_over(upgraded), SECONDS)
    finally:
        pipeline.kill()
    told = emitted.read()
    emitted.close()

    same = [(at, at) for at in range(1, last + 1)]
    double = [(at, 2 * at) for at in range(1, last + 1)]
    expected = {
        ("device", "data"): same,
        ("bobs", "data"): same,
        ("bobs", "double"): double,
        ("chained", "copy"): double,
        **{(id_, "count"): same for id_ in ("bobs", "carols", "chained")},
        **{(id_, "copy"): same for id_ in ("bobs", "carols")},
    }
    components = "SELECT DISTINCT component, tenant_id FROM service_objects ORDER BY tenant_id, 1"
    assert len(upgraded.database.rows(components)) == 4
    for (id_, stream), found in expected.items():
        assert values(upgraded, id_, stream) == found, (id_, stream)
        times = [e.timestamp for e in told if (e.service_object, e.stream) == (id_, stream)]
        first = PUT_OFF if (id_, stream) in _OF_BOBS_DEVICE else EMITTED + 1
        assert times[times.index(first) :] == list(range(first, last + 1)), (id_, stream)
        assert times[: times.index(first)] == list(range(EMITTED + 1, first))


_OF_BOBS_DEVICE = {
    ("bobs", "data"),
    ("bobs", "double"),
    ("chained", "copy"),
    ("chained", "count"),
}
