"""All publishers that a configuration names, as one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from monitoring.configuration import Publish
from monitoring.model import Measurement
from monitoring.publishers.file import FilePublisher
from monitoring.publishers.log import LogPublisher
from monitoring.publishers.publisher import Publisher
from monitoring.publishers.sums import Sums

log = logging.getLogger("servioticy.monitoring")


class Surroundings(NamedTuple):
    """What publishers are made of beside the configuration."""

    file: Path
    """of this process's measurements"""
    sums: Sums
    """which the program tells among its metrics"""


MADE: Mapping[str, Callable[[Publish, Surroundings], Publisher]] = {
    "file": lambda chosen, here: FilePublisher(here.file, chosen.file_bytes),
    "log": lambda _chosen, _here: LogPublisher(),
    "metrics": lambda _chosen, here: here.sums,
}


class Every:
    """Publishes to each; one that fails costs the others nothing."""

    def __init__(self, chosen: Publish, here: Surroundings) -> None:
        self._publishers = {name: MADE[name](chosen, here) for name in dict.fromkeys(chosen.to)}

    def publish(self, measurements: Sequence[Measurement]) -> int:
        """Let each publish them; return how many were lost to one of them at least."""
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
