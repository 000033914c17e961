"""How Kafka is reached: one value, in the words of each client, and given to all of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from command.platform import stores
from servioticy import bootstrap
from servioticy.domain.topics import Topics
from servioticy.errors import SettingsError
from servioticy.messaging import admin, consumer, emitter, grouped_producer, log_writer
from servioticy.messaging.connection import KafkaConnection
from servioticy.settings import Settings, changed
from servioticy.settings.sections import Kafka

PASSWORD = 'a "secret\\'
WITH_PASSWORD = Kafka(
    security_protocol="SASL_PLAINTEXT",
    sasl_mechanism="SCRAM-SHA-512",
    sasl_username="me",
    sasl_password=PASSWORD,
)
LOGIN = (
    "org.apache.kafka.common.security.scram.ScramLoginModule required "
    r'username="me" password="a \"secret\\";'
)
TOPICS = Topics("test-")


@pytest.fixture
def encrypted(tmp_path: Path) -> Kafka:
    """A client that knows the brokers' authority and shows a certificate."""
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_text(f"-----{name}-----\n")
    return Kafka(
        security_protocol="SSL",
        ssl_ca=str(tmp_path / "ca"),
        ssl_certificate=str(tmp_path / "certificate"),
        ssl_key=str(tmp_path / "key"),
        ssl_key_password="of the key",
        ssl_check_host=False,
    )


def test_an_open_broker_needs_its_address_only() -> None:
    connection = KafkaConnection("a:1,b:2")

    assert connection.for_librdkafka() == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "PLAINTEXT",
        "reconnect.backoff.max.ms": "500",
    }
    assert connection.for_java() == connection.for_librdkafka()
    assert connection.for_kafka_python() == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "PLAINTEXT",
        "reconnect_backoff_max_ms": 500,
        "ssl_check_hostname": True,
    }


def test_a_password_is_told_in_the_words_of_each_client() -> None:
    connection = KafkaConnection("a:1", WITH_PASSWORD)

    assert connection.for_librdkafka() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_PLAINTEXT",
        "reconnect.backoff.max.ms": "500",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": PASSWORD,
    }
    assert connection.for_java() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_PLAINTEXT",
        "reconnect.backoff.max.ms": "500",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": LOGIN,
    }
    assert connection.for_kafka_python() == {
        "bootstrap_servers": ["a:1"],
        "security_protocol": "SASL_PLAINTEXT",
        "reconnect_backoff_max_ms": 500,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "me",
        "sasl_plain_password": PASSWORD,
        "ssl_check_hostname": True,
    }


def test_certificates_are_told_in_the_words_of_each_client(encrypted: Kafka) -> None:
    connection = KafkaConnection("a:1", encrypted)

    assert connection.for_librdkafka() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SSL",
        "reconnect.backoff.max.ms": "500",
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.ca.location": encrypted.ssl_ca,
        "ssl.certificate.location": encrypted.ssl_certificate,
        "ssl.key.location": encrypted.ssl_key,
        "ssl.key.password": "of the key",
    }
    assert connection.for_java() == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SSL",
        "reconnect.backoff.max.ms": "500",
        "ssl.endpoint.identification.algorithm": "",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "-----ca-----\n",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "-----certificate-----\n",
        "ssl.keystore.key": "-----key-----\n",
        "ssl.key.password": "of the key",
    }
    assert connection.for_kafka_python() == {
        "bootstrap_servers": ["a:1"],
        "security_protocol": "SSL",
        "reconnect_backoff_max_ms": 500,
        "ssl_cafile": encrypted.ssl_ca,
        "ssl_certfile": encrypted.ssl_certificate,
        "ssl_keyfile": encrypted.ssl_key,
        "ssl_password": "of the key",
        "ssl_check_hostname": False,
    }


def test_hosts_are_checked_unless_somebody_says_otherwise() -> None:
    connection = KafkaConnection("a:1", Kafka(security_protocol="SSL"))

    found = [connection.for_librdkafka(), connection.for_java()]
    assert [each["ssl.endpoint.identification.algorithm"] for each in found] == ["https"] * 2
    assert connection.for_kafka_python()["ssl_check_hostname"] is True


@pytest.mark.parametrize(
    ("security", "message"),
    [
        ({"security_protocol": "SASL_SSL"}, "kafka_sasl_username is empty"),
        (
            {"security_protocol": "SASL_SSL", "sasl_username": "me"},
            "kafka_sasl_password is empty: expected it with kafka_sasl_username, .* SASL_SSL",
        ),
        ({"sasl_username": "me"}, "kafka_sasl_username is not empty: .* not PLAINTEXT"),
        (
            {"security_protocol": "SSL", "sasl_password": "secret"},
            "kafka_sasl_password is not empty: .* not SSL",
        ),
        ({"ssl_ca": "/x"}, "kafka_ssl_ca is not empty"),
        ({"ssl_key": "/x"}, "kafka_ssl_key is not empty"),
        ({"ssl_key_password": "secret"}, "kafka_ssl_key_password is not empty"),
        (
            {"security_protocol": "SSL", "ssl_certificate": "/x"},
            "kafka_ssl_key is empty: expected it with kafka_ssl_certificate",
        ),
    ],
)
def test_what_would_not_protect_is_refused(security: dict[str, Any], message: str) -> None:
    """Nothing goes in the clear that somebody believes to be safe."""
    with pytest.raises(SettingsError, match=message) as told:
        KafkaConnection("a:1", Kafka(**security))
    assert "secret" not in str(told.value)


def test_a_certificate_that_cannot_be_read_is_named() -> None:
    connection = KafkaConnection("a:1", Kafka(security_protocol="SSL", ssl_ca="/no/such/file"))

    with pytest.raises(SettingsError, match="setting kafka_ssl_ca = '/no/such/file'"):
        connection.for_java()


def test_its_secrets_are_not_shown() -> None:
    assert "secret" not in repr(KafkaConnection("a:1", WITH_PASSWORD))
    assert "secret" not in repr(changed(Settings(), kafka_sasl_password="secret"))


class Asked(Exception):
    """A client was asked for."""


CLIENTS: dict[str, Callable[[KafkaConnection], object]] = {
    "LogWriter": lambda it: log_writer.LogWriter(it, TOPICS, 1.0),
    "Emitter": lambda it: emitter.Emitter(it, TOPICS, 0),
    "LogEnds": lambda it: consumer.LogEnds(it, "x"),
    "EmittedReader": lambda it: consumer.EmittedReader(it, TOPICS, str).start(lambda _: None),
    "emitted_from": lambda it: consumer.emitted_from(it, TOPICS, 0, 0),
    "wait_until_led": lambda it: consumer.wait_until_led(it, ["x"], 1),
    "ensure_topics": lambda it: admin.ensure_topics(it, TOPICS, 1),
    "topic_id": lambda it: admin.topic_id(it, "x"),
}


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_of_the_broker_gets_all_of_it(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is forgotten would be the only one that a guarded broker does not let in."""
    asked: list[dict[str, Any]] = []

    def client(configuration: dict[str, Any] | None = None, **named: Any) -> None:
        asked.append(configuration or named)
        raise Asked

    for module in (emitter, grouped_producer):
        monkeypatch.setattr(module, "Producer", client)
    monkeypatch.setattr(consumer, "Consumer", client)
    monkeypatch.setattr(admin, "KafkaAdminClient", client)
    connection = KafkaConnection("a:1", WITH_PASSWORD)
    caplog.set_level(logging.DEBUG)
    with suppress(Asked):
        CLIENTS[name](connection)

    whole = connection.for_librdkafka(), connection.for_kafka_python()
    assert any(each.items() <= asked[0].items() for each in whole)
    assert "secret" not in caplog.text


def test_the_settings_make_the_connection() -> None:
    settings = changed(
        Settings(),
        bootstrap_servers="a:1",
        kafka_security_protocol="SASL_PLAINTEXT",
        kafka_sasl_mechanism="SCRAM-SHA-512",
        kafka_sasl_username="me",
        kafka_sasl_password=PASSWORD,
    )

    assert bootstrap.kafka(settings) == KafkaConnection("a:1", WITH_PASSWORD)


def test_without_a_kafka_it_is_said_how_to_name_one() -> None:
    with pytest.raises(SettingsError, match="SERVIOTICY_BOOTSTRAP_SERVERS"):
        bootstrap.kafka(Settings())


def test_the_embedded_broker_is_not_believed_to_be_guarded() -> None:
    settings = changed(Settings(), dsn="postgresql://somewhere", kafka_security_protocol="SSL")

    with pytest.raises(SettingsError, match="not of the embedded broker"):
        stores(settings)
