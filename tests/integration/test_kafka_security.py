"""Brokers that let in only who has a password, and only through an encrypted connection."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.certificates import certified
from waiting import until

from servioticy import bootstrap
from servioticy.domain.emissions import emission
from servioticy.domain.records import EmittedRecord, UpdateRecord
from servioticy.domain.topics import Topics
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.errors import Unavailable
from servioticy.messaging.admin import ensure_topics
from servioticy.messaging.connection import KafkaConnection
from servioticy.messaging.consumer import EmittedReader
from servioticy.messaging.emitter import Emitter
from servioticy.messaging.log_writer import LogWriter
from servioticy.ports.emitted import UnreadRecord
from servioticy.settings import Settings, changed, load, to_environment
from servioticy.settings.sections import Kafka
from servioticy.storage.partition_store import PostgresPartitionStore
from servioticy.supervisor.process import Child

SECONDS = 300.0
PASSWORD = 'hunter2 "and" \\ more'
PROPERTIES = """
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={listeners}
listener.security.protocol.map=\
PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={login}
"""
ENCRYPTED = """
listener.name.sasl_ssl.plain.sasl.jaas.config={login}
listener.name.sasl_ssl.ssl.client.auth=required
ssl.keystore.type=PEM
ssl.keystore.location={folder}/both.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/certificate.pem
"""
LOGIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'user_servioticy="{PASSWORD}";'
)
LOGIN = LOGIN.replace(PASSWORD, PASSWORD.replace("\\", "\\\\").replace('"', '\\"'))


class Guarded(EmbeddedKafka):
    """The embedded broker with listeners that ask for a password."""

    def __init__(self, data: Path, certificates: Path | None) -> None:
        super().__init__(data, load())
        self._data = data
        self._certificates = certificates
        self.protocols = ["SASL_PLAINTEXT", *(["SASL_SSL"] if certificates else [])]
        self.addresses = {each: f"127.0.0.1:{ports.free()}" for each in self.protocols}

    def prepare(self) -> None:
        super().prepare()
        addresses = {"PLAINTEXT": self.bootstrap_servers, **self.addresses}
        text = PROPERTIES + (ENCRYPTED if self._certificates else "")
        more = text.format(
            listeners=",".join(f"{name}://{address}" for name, address in addresses.items()),
            controller=(self._data / "controller-port").read_text().strip(),
            # What reads the file takes a backslash away.
            login=LOGIN.replace("\\", "\\\\"),
            folder=self._certificates,
        )
        with (self._data / "server.properties").open("a") as properties:
            properties.write(more)

    def connection(self, protocol: str, **others: Any) -> KafkaConnection:
        """What lets us in."""
        security = {"security_protocol": protocol, "sasl_username": "servioticy"}
        security["sasl_password"] = PASSWORD
        if self._certificates and "SSL" in protocol:
            security["ssl_ca"] = security["ssl_certificate"] = str(
                self._certificates / "certificate.pem"
            )
            security["ssl_key"] = str(self._certificates / "key.pem")
        return KafkaConnection(self.addresses[protocol], Kafka(**{**security, **others}))


@pytest.fixture(scope="module")
def broker(
    run_part: Callable[[str, Any], Child], tmp_path_factory: pytest.TempPathFactory
) -> Guarded:
    """One that encrypts, too, where the machine can make certificates."""
    certificates = tmp_path_factory.mktemp("certificates")
    found = Guarded(tmp_path_factory.mktemp("guarded") / "data", certified(certificates))
    run_part("guarded-kafka", found)
    return found


@pytest.fixture(params=["SASL_PLAINTEXT", "SASL_SSL"])
def protocol(request: pytest.FixtureRequest, broker: Guarded) -> str:
    if request.param not in broker.protocols:
        pytest.skip("no openssl here to make a certificate")
    return str(request.param)


def test_all_our_clients_are_let_in(broker: Guarded, protocol: str, topic_prefix: str) -> None:
    connection, topics = broker.connection(protocol), Topics(topic_prefix)
    ensure_topics(connection, topics, 1)
    reader, found = EmittedReader(connection, topics, lambda: "id"), list[UnreadRecord]()
    reader.start(found.extend)
    writer, output = LogWriter(connection, topics, 10), Emitter(connection, topics, 0)
    try:
        assert writer.append(0, _an_update()) == 0
        record = EmittedRecord("so", "s", 1, 1, 7, msgspec.Raw(b"{}"), (0, 0))
        output.emit(1, [emission(record)])
        output.flush()
        until(lambda: [each.read().timestamp for each in found] == [7])
        assert [each.timestamp for each in output.emitted_from(0)] == [7]
    finally:
        reader.stop()
        writer.close()


def test_who_has_another_password_is_not_let_in(
    broker: Guarded, protocol: str, topic_prefix: str, capfd: pytest.CaptureFixture[str]
) -> None:
    connection = broker.connection(protocol, sasl_password="wrong-secret")
    writer = LogWriter(connection, Topics(topic_prefix), 1)

    with pytest.raises(Unavailable) as told:
        writer.append(0, _an_update())
    assert "wrong-secret" not in str(told.value) + "".join(capfd.readouterr())


@pytest.fixture
def settings(broker: Guarded, dsn: str, topic_prefix: str) -> Settings:
    """Of a platform on the most guarded listener."""
    found = broker.connection(broker.protocols[-1])
    named = {f"kafka_{each}": getattr(found.security, each) for each in found.security.__slots__}
    return changed(
        Settings(),
        dsn=dsn,
        topic_prefix=topic_prefix,
        bootstrap_servers=found.bootstrap_servers,
        **named,
    )


@pytest.fixture
def pipeline(settings: Settings, tmp_path: Path) -> Iterator[Path]:
    """The log of a pipeline that runs."""
    said = tmp_path / "pipeline.log"
    with said.open("wb") as out:
        program = subprocess.Popen(
            [sys.executable, "-P", "-m", "pipeline"],
            env={**os.environ, **to_environment(settings), "TMPDIR": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        yield said
        program.terminate()
        program.wait(SECONDS)


def test_the_pipeline_is_let_in(settings: Settings, pipeline: Path) -> None:
    """Spark's Kafka source speaks for itself."""
    ensure_topics(bootstrap.kafka(settings), Topics(settings.log.topic_prefix), 1)
    bootstrap.KafkaLog(settings).append(0, _an_update())
    store = PostgresPartitionStore(bootstrap.connect(settings), lambda _: ())
    until(lambda: store.all_progress().get(0) == 1)

    assert PASSWORD not in pipeline.read_text("utf-8", "replace")


def _an_update() -> UpdateRecord:
    return UpdateRecord("so", "s", 7, msgspec.Raw(b"{}"))
