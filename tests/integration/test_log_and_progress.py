"""The log and progress on a real broker and a real Postgres that do not belong together."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from kafka.errors import KafkaError

from command import cli
from pipeline.spark import running
from servioticy import bootstrap
from servioticy.domain import log_loss
from servioticy.domain.log_loss import LogLost
from servioticy.domain.records import UpdateRecord
from servioticy.domain.topics import Topics
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.errors import Unavailable
from servioticy.messaging.admin import _client, ensure_topics
from servioticy.messaging.connection import KafkaConnection
from servioticy.metrics import Registry
from servioticy.settings import Settings, changed
from servioticy.storage.database import Database
from servioticy.storage.history import PostgresHistory
from servioticy.storage.log_identity import PostgresLogIdentity

UPDATE = UpdateRecord("so", "s", 1, msgspec.Raw(b"{}"))


@pytest.fixture
def database(dsn: str):
    made = Database(dsn)
    yield made
    made.close()


@pytest.fixture
def settings(dsn: str, real_kafka: EmbeddedKafka, topic_prefix: str, monkeypatch) -> Settings:
    servers = real_kafka.bootstrap_servers
    monkeypatch.setenv("SERVIOTICY_DSN", dsn)
    monkeypatch.setenv("SERVIOTICY_BOOTSTRAP_SERVERS", servers)
    monkeypatch.setenv("SERVIOTICY_TOPIC_PREFIX", topic_prefix)
    ensure_topics(KafkaConnection(servers), Topics(topic_prefix), 1)
    return changed(Settings(), dsn=dsn, bootstrap_servers=servers, topic_prefix=topic_prefix)


def store_up_to(database: Database, offset: int) -> None:
    database.rows(
        "INSERT INTO progress VALUES (0, %(offset)s, %(offset)s)"
        " ON CONFLICT (log_partition) DO UPDATE SET next_offset = %(offset)s",
        {"offset": offset},
    )


def append(settings: Settings, times: int) -> None:
    log = bootstrap.KafkaLog(settings)
    for _ in range(times):
        log.append(0, UPDATE)


def check(settings: Settings, database: Database) -> None:
    log_loss.check(PostgresLogIdentity(database), lambda: bootstrap.present_log(settings))


def make_anew(settings: Settings) -> None:
    topics = Topics(settings.log.topic_prefix)
    with _client(bootstrap.kafka(settings)) as client:
        client.delete_topics([topics.updates])
    for _ in range(200):
        try:
            ensure_topics(bootstrap.kafka(settings), topics, 1)
            if bootstrap.present_log(settings).bounds[0].end == 0:
                return
        except (Unavailable, KafkaError, KeyError):
            pass  # it is still going, or not quite there
        time.sleep(0.05)
    pytest.fail("the topic was not made anew")


def test_a_log_that_lost_its_end_is_refused_until_that_is_accepted(
    settings: Settings, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a power cut leaves: Postgres waits for the disk, the broker does not."""
    append(settings, 3)
    store_up_to(database, 3)
    check(settings, database)
    store_up_to(database, 5)

    with pytest.raises(LogLost, match="stored up to offset 5, the log ends at 3"):
        check(settings, database)
    assert cli.main(["doctor"]) == 1
    assert "offsets 3 to 4 are lost" in capsys.readouterr().out

    assert cli.main(["doctor", "--accept-log-loss"]) == 0
    assert "offsets 3 to 4 are lost; it goes on at 3" in capsys.readouterr().out
    check(settings, database)
    assert database.rows("SELECT stored_offset, log_end FROM log_losses") == [(5, 3)]
    assert database.rows("SELECT next_offset, emitted_offset FROM progress") == [(3, 3)]


def test_a_log_that_lost_its_end_does_not_grow(settings: Settings, database: Database) -> None:
    """Grown past progress it would look whole, and what is appended meanwhile be skipped."""
    append(settings, 3)
    store_up_to(database, 4)
    log = bootstrap.KafkaLog(settings, PostgresHistory(database).progress)

    with pytest.raises(Unavailable, match="servioticy doctor"):
        log.append(0, UPDATE)
    assert log.end_offset(0) == 3

    store_up_to(database, 3)
    assert log.append(0, UPDATE) == 3


def test_a_topic_made_anew_is_refused(settings: Settings, database: Database) -> None:
    """Also where it is as long as the old one: it is told by its id."""
    append(settings, 3)
    store_up_to(database, 3)
    check(settings, database)
    make_anew(settings)
    append(settings, 4)

    with pytest.raises(LogLost, match="of a topic that is gone"):
        check(settings, database)

    assert cli.main(["doctor", "--accept-log-loss"]) == 0
    check(settings, database)
    assert database.rows("SELECT next_offset, emitted_offset FROM progress") == [(0, 0)]


def test_the_pipeline_refuses_such_a_log_before_it_starts_anything(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    """Its supervisor tries again with pauses: each try has to be cheap and say why. So it does not
    wait for Java, which starts beside."""
    java: Any = None
    append(settings, 3)
    store_up_to(database, 5)

    with pytest.raises(LogLost, match="servioticy doctor --accept-log-loss"):
        running._run(settings, [], Registry(), tmp_path, java)
