"""Sends recorded series through the REST API, each device in its order, at a watchable pace."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from demonstration.series import Reading
from demonstration.templates import STREAM
from servioticy.client.rest import Rest
from servioticy.errors import ServioticyError

SECONDS = 22.0
"""How long a whole series takes at speed 1, whatever its real length."""


class Replay:
    """One series in one thread, over one connection."""

    def __init__(
        self,
        api: Rest,
        ids: dict[str, str],
        readings: Sequence[Reading],
        pause_seconds: float,
        on_send: Callable[[Reading], None],
    ) -> None:
        self._api = api
        self._ids = ids
        self._readings = readings
        self._pause = pause_seconds
        self._on_send = on_send
        self.error: ServioticyError | None = None
        self.thread = threading.Thread(target=self._run, name="replay", daemon=True)

    def _run(self) -> None:
        began = time.monotonic()
        try:
            for number, reading in enumerate(self._readings):
                early = began + number * self._pause - time.monotonic()
                if early > 0:
                    time.sleep(early)
                self._on_send(reading)
                self._api.put(self._ids[reading.device], STREAM, update(reading))
        except ServioticyError as error:
            self.error = error
        finally:
            self._api.close()


def update(reading: Reading) -> dict[str, object]:
    """Return the reading as a Sensor Update."""
    channels = {reading.device: {"current-value": reading.value}}
    return {"channels": channels, "lastUpdate": reading.timestamp}


def not_sent(api: Rest, ids: dict[str, str], readings: Sequence[Reading]) -> list[Reading]:
    """Return what each device has still to send: a second start goes on where the first ended."""
    last = {
        device: api.last_timestamp(ids[device], STREAM)
        for device in {reading.device for reading in readings}
    }
    return [each for each in readings if each.timestamp > (last[each.device] or 0)]


def pause(whole: Sequence[Reading], speed: float) -> float:
    """Return the seconds between two readings of a series."""
    return SECONDS / max(1, len(whole)) / speed if speed > 0 else 0.0
