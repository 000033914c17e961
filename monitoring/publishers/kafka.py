"""Measurements in a topic of Kafka, a line of JSON each; those of a sequence stay in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from monitoring.configuration import NotUnderstood
from monitoring.model import Calls, Measurement
from servioticy.domain.topics import Topics
from servioticy.settings import Settings

if TYPE_CHECKING:
    from servioticy.messaging.measurements import MeasurementTopic


class KafkaPublisher:
    """Makes the topic at its first measurements, on the platform's brokers."""

    def __init__(self, settings: Settings, topic: str, most_bytes: int) -> None:
        """The topic keeps so many bytes. Raises NotUnderstood if it is one of the platform's."""
        self._settings, self._most = settings, most_bytes
        self._name = settings.log.topic_prefix + topic
        if self._name in Topics(settings.log.topic_prefix).all:
            raise NotUnderstood(f"{topic} is a topic of the platform - at `$.publish.kafka_topic`")
        self._topic: MeasurementTopic | None = None
        self._encoder = msgspec.json.Encoder()

    def publish(self, measurements: Sequence[Measurement]) -> int:
        """Send them, and wait for the broker; return how many it refused. Raises Unavailable."""
        if self._topic is None:
            # Kafka's clients cost a program that does not use them 20 MB.
            from servioticy.bootstrap import kafka
            from servioticy.messaging.measurements import MeasurementTopic

            self._topic = MeasurementTopic(kafka(self._settings), self._name, self._most)
        return self._topic.send(
            [(_key(each).encode(), self._encoder.encode(each)) for each in measurements]
        )

    def close(self) -> None:
        """Let the client go."""
        if self._topic is not None:
            self._topic.close()


def _key(measured: Measurement) -> str:
    return measured.place if isinstance(measured, Calls) else measured.sequence
