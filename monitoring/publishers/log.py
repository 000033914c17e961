"""Measurements as events of the program's log, which tells only some of very many."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from monitoring.model import Measurement

log = logging.getLogger("servioticy.monitoring")


class LogPublisher:
    """An event `measured` for each."""

    def publish(self, measurements: Sequence[Measurement]) -> None:
        """Log them."""
        for each in measurements:
            log.info("measured", extra={"measurement": msgspec.to_builtins(each)})

    def close(self) -> None:
        """Nothing is kept open."""
