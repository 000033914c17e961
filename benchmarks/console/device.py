"""A device whose stream is looked at, what is derived of it, and who sends for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import ground
from servioticy.settings import Settings

HISTORY, BATCH = 2_000, 500
STEP = 20_000
"""Milliseconds between two updates of the history."""
TURNS = 20
"""A second, in which what is due is sent together."""
CODE = "function(air) { return iot.value(air, 'celsius') * 1.8 + 32 }"


class Device:
    """One with a stream `air` of two channels, and a stream derived of it."""

    def __init__(self, settings: Settings, token: str) -> None:
        self._settings = settings
        self._token = token
        celsius, door = {"type": "number", "unit": "Cel"}, {"type": "boolean"}
        document = {
            "version": "0.2.0",
            "name": "Cellar",
            "streams": {
                "air": {"channels": {"celsius": celsius, "door": door}},
                "warm": {
                    "channels": {"fahrenheit": {"type": "number", "current-value": CODE}},
                },
            },
        }
        self._newest = int(time.time() * 1000) - 3_600_000
        with ground.client(settings, token) as client:
            self.id = client.create(document)
            first = self._newest - HISTORY * STEP
            for begin in range(0, HISTORY, BATCH):
                numbers = range(begin, begin + BATCH)
                client.put_many(self.id, "air", [_update(first + n * STEP, n) for n in numbers])

    @property
    def page(self) -> str:
        """The path of the stream's page."""
        return f"/console/streams/{self.id}/air"

    @contextmanager
    def sending(self, rate: int) -> Iterator[Sent]:
        """Send so many updates a second meanwhile, one every so many milliseconds of its time."""
        sent, stop = Sent(), threading.Event()

        def drive() -> None:
            with ground.client(self._settings, self._token) as client:
                began = time.perf_counter()
                while not stop.wait(1 / TURNS):
                    due = int((time.perf_counter() - began) * rate) - sent.count
                    for begin in range(0, due, BATCH):
                        batch = [self._next() for _ in range(min(BATCH, due - begin))]
                        client.put_many(self.id, "air", batch)
                        sent.count += len(batch)

        thread = threading.Thread(target=drive, daemon=True)
        thread.start()
        try:
            yield sent
        finally:
            stop.set()
            thread.join(60)

    def _next(self) -> dict[str, object]:
        self._newest = max(self._newest + 1, int(time.time() * 1000))
        return _update(self._newest, self._newest)


class Sent:
    """How many updates were accepted so far."""

    def __init__(self) -> None:
        self.count = 0


def _update(at: int, number: int) -> dict[str, object]:
    value = 20 + number % 97 / 10
    channels = {"celsius": {"current-value": value}, "door": {"current-value": number % 2 == 0}}
    return {"channels": channels, "lastUpdate": at}
