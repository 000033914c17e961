"""All publishers that a configuration names, as one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

from monitoring.configuration import NotUnderstood, Publish
from monitoring.model import Measurement
from monitoring.publishers.beside import Beside
from monitoring.publishers.file import FilePublisher
from monitoring.publishers.kafka import KafkaPublisher
from monitoring.publishers.log import LogPublisher
from monitoring.publishers.otlp import OtlpPublisher
from monitoring.publishers.own import OwnPublisher
from monitoring.publishers.pipe import PipePublisher
from monitoring.publishers.postgres import PostgresPublisher
from monitoring.publishers.publisher import Publisher
from monitoring.publishers.sums import Sums
from servioticy.settings import Settings

log = logging.getLogger("servioticy.monitoring")


class Surroundings(NamedTuple):
    """What publishers are made of beside the configuration."""

    file: Path
    """of this process's measurements"""
    sums: Sums
    """which the program tells among its metrics"""
    settings: Settings = Settings()
    program: str = ""
    folder: Path = Path()
    """of the file of aspects: what that names stands there"""
    quiet: Callable[[], AbstractContextManager[None]] = nullcontext
    """while it lasts nothing is measured of the thread"""


MADE: Mapping[str, Callable[[Publish, Surroundings], Publisher]] = {
    "file": lambda chosen, here: FilePublisher(here.file, chosen.file_bytes),
    "log": lambda _chosen, _here: LogPublisher(),
    "metrics": lambda _chosen, here: here.sums,
    "otlp": lambda chosen, _here: OtlpPublisher(chosen.otlp_url, chosen.otlp_headers),
    "kafka": lambda chosen, here: KafkaPublisher(
        here.settings, chosen.kafka_topic, chosen.kafka_bytes
    ),
    "postgres": lambda chosen, here: PostgresPublisher(
        here.settings, here.program, chosen.postgres_rows
    ),
    "own": lambda chosen, here: OwnPublisher(here.folder / chosen.own),
    "pipe": lambda chosen, here: PipePublisher(here.folder / chosen.pipe),
}
AT_HAND = frozenset({"file", "log", "metrics"})
"""Those for which nobody has to wait."""


class Every:
    """Publishes to each; one that fails, or is slow, costs the others nothing."""

    def __init__(self, chosen: Publish, here: Surroundings) -> None:
        """Raises NotUnderstood where one of them cannot be as it is described."""
        self._publishers: dict[str, Publisher] = {}
        try:
            for name in dict.fromkeys(chosen.to):
                made = MADE[name](chosen, here)
                if name not in AT_HAND:
                    made = Beside(name, made, chosen.buffer_bytes, here.quiet)
                self._publishers[name] = made
        except NotUnderstood:
            self.close()
            raise

    @property
    def lost(self) -> int:
        """Measurements that were not told by those that publish later, counted for each."""
        beside = [each for each in self._publishers.values() if isinstance(each, Beside)]
        return sum(each.dropped for each in beside)

    def publish(self, measurements: Sequence[Measurement]) -> int:
        """Let each publish them; return how many were lost already to one of them at least."""
        lost = 0
        for name, each in self._publishers.items():
            try:
                each.publish(measurements)
            except Exception as error:  # noqa: BLE001  whatever a publisher stands on may raise
                lost = len(measurements)
                log.warning("measurements_lost", extra={"publisher": name, "why": repr(error)})
        return lost

    def close(self) -> None:
        """Close each."""
        for each in self._publishers.values():
            each.close()
