"""How Kafka's clients reach the brokers, and who they say they are: one value for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from servioticy.errors import SettingsError
from servioticy.settings.sections import Kafka

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


RECONNECT_MS = 500
"""The longest pause between two attempts to reach a broker that is away: who is there to see waits
no longer for one that is back. librdkafka's own is 10 s, after as long an absence."""


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """Where the brokers are and how they are spoken to.

    Three clients are configured from it, each in words of its own. Raises SettingsError where
    the security asked for lacks something, or would not be used: what somebody believes to be
    encrypted or authenticated must not go in the clear.
    """

    bootstrap_servers: str
    security: Kafka = field(default_factory=Kafka)

    def __post_init__(self) -> None:
        given = self.security
        login = {
            "kafka_sasl_username": given.sasl_username,
            "kafka_sasl_password": given.sasl_password,
        }
        pair = {"kafka_ssl_certificate": given.ssl_certificate, "kafka_ssl_key": given.ssl_key}
        more = {"kafka_ssl_ca": given.ssl_ca, "kafka_ssl_key_password": given.ssl_key_password}
        if self._authenticates:
            _require(login, given)
        else:
            _refuse(login, given)
        if not self._encrypts:
            _refuse(pair | more, given)
        elif any(pair.values()):
            _require(pair, given)

    @property
    def _encrypts(self) -> bool:
        return "SSL" in self.security.security_protocol

    @property
    def _authenticates(self) -> bool:
        return "SASL" in self.security.security_protocol

    def for_librdkafka(self) -> dict[str, Any]:
        """Return the configuration of confluent-kafka's clients."""
        given = self.security
        found = {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": given.security_protocol,
            "reconnect.backoff.max.ms": str(RECONNECT_MS),
        }
        if self._authenticates:
            found["sasl.mechanisms"] = given.sasl_mechanism
            found["sasl.username"] = given.sasl_username
            found["sasl.password"] = given.sasl_password
        if self._encrypts:
            found["ssl.endpoint.identification.algorithm"] = (
                "https" if given.ssl_check_host else "none"
            )
            found["ssl.ca.location"] = given.ssl_ca
            found["ssl.certificate.location"] = given.ssl_certificate
            found["ssl.key.location"] = given.ssl_key
            found["ssl.key.password"] = given.ssl_key_password
        return _without_empty(found)

    def for_kafka_python(self) -> dict[str, Any]:
        """Return the arguments of kafka-python's clients."""
        given = self.security
        found: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers.split(","),
            "security_protocol": given.security_protocol,
            "reconnect_backoff_max_ms": RECONNECT_MS,
        }
        if self._authenticates:
            found["sasl_mechanism"] = given.sasl_mechanism
            found["sasl_plain_username"] = given.sasl_username
            found["sasl_plain_password"] = given.sasl_password
        if self._encrypts:
            found["ssl_cafile"] = given.ssl_ca
            found["ssl_certfile"] = given.ssl_certificate
            found["ssl_keyfile"] = given.ssl_key
            found["ssl_password"] = given.ssl_key_password
        return _without_empty(found) | {"ssl_check_hostname": given.ssl_check_host}

    def for_java(self) -> dict[str, str]:
        """Return the properties of Java's clients, Spark's among them.

        Certificates go along as they are: a machine that reads for Spark may not have the files.
        Raises SettingsError where one cannot be read.
        """
        given = self.security
        found = {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": given.security_protocol,
            "reconnect.backoff.max.ms": str(RECONNECT_MS),
        }
        if self._authenticates:
            found["sasl.mechanism"] = given.sasl_mechanism
            found["sasl.jaas.config"] = (
                f"{_LOGIN_MODULES[given.sasl_mechanism]} required "
                f"username={_quoted(given.sasl_username)} "
                f"password={_quoted(given.sasl_password)};"
            )
        if self._encrypts:
            found["ssl.endpoint.identification.algorithm"] = (
                "https" if given.ssl_check_host else ""
            )
            if given.ssl_ca:
                found["ssl.truststore.type"] = "PEM"
                found["ssl.truststore.certificates"] = _read("kafka_ssl_ca", given.ssl_ca)
            if given.ssl_certificate:
                found["ssl.keystore.type"] = "PEM"
                found["ssl.keystore.certificate.chain"] = _read(
                    "kafka_ssl_certificate", given.ssl_certificate
                )
                found["ssl.keystore.key"] = _read("kafka_ssl_key", given.ssl_key)
                if given.ssl_key_password:
                    found["ssl.key.password"] = given.ssl_key_password
        return found


def _require(settings: Mapping[str, str], given: Kafka) -> None:
    for name, value in settings.items():
        if not value:
            raise SettingsError(
                f"setting {name} is empty: expected it with {', '.join(settings)} "
                f"and kafka_security_protocol {given.security_protocol}"
            )


def _refuse(settings: Mapping[str, str], given: Kafka) -> None:
    for name, value in settings.items():
        if value:
            raise SettingsError(
                f"setting {name} is not empty: expected a kafka_security_protocol that uses it, "
                f"not {given.security_protocol}"
            )


def _without_empty(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if value != ""}


def _quoted(text: str) -> str:
    """Return a value of a JAAS configuration."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _read(name: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise SettingsError(f"setting {name} = {file!r}: expected a PEM file: {error}") from error
