"""Devices that send without a pause while something is done to the platform, and who watches."""

from __future__ import annotations

import json
import math
import threading
import time
from dataclasses import dataclass, field

from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until

from servioticy.domain.model import StreamRef

VALUE = '.channels.v["current-value"]'
DEVICE = {
    "version": "0.2.0",
    "streams": {
        "data": {"channels": {"v": {"type": "number"}}},
        "double": {
            "channels": {
                "v": {"type": "number", "current-value": f"function(data){{return 2*data{VALUE}}}"}
            }
        },
        "sum": {
            "channels": {
                "v": {
                    "type": "number",
                    "current-value": f"function(double,sum){{return double{VALUE}+"
                    f"(sum===null?0:sum{VALUE})}}",
                }
            }
        },
    },
}
"""What is sent, twice as much, and the sum of that: it shows whatever is lost or doubled."""
PAUSE_SECONDS = 0.02
STEADY_SECONDS = 3.0
BEHIND = 12
"""Updates of a device that may be on their way: a second, as a busy machine sends."""


@dataclass
class Device:
    """One that sends 1, 2, 3 ... with that for time, and what a socket has got of its sum."""

    id: str
    sent: int = 0
    seen: list[tuple[int, float]] = field(default_factory=list)

    def follows(self, mark: int) -> bool:
        """Whether what came last was sent just now, and after this one."""
        newest = self.seen[-1][0] if self.seen else 0
        return newest >= max(mark, self.sent - BEHIND)

    @property
    def sums(self) -> list[tuple[int, float]]:
        """What is to come of what was sent: computed here, and not by the platform."""
        return [(n, n * (n + 1)) for n in range(1, self.sent + 1)]


class Traffic:
    """So many devices that send in turn, until `end`; each is watched by a socket."""

    def __init__(self, platform: RunningPlatform, number: int) -> None:
        self._platform = platform
        self.devices = [Device(platform.create(DEVICE)) for _ in range(number)]
        self._stop = threading.Event()
        self._watching = [
            threading.Thread(target=self._watch, args=(each,)) for each in self.devices
        ]
        self._sending = threading.Thread(target=self._send)
        for each in (*self._watching, self._sending):
            each.daemon = True
            each.start()

    def wait_for_more(self) -> float:
        """Wait until what is sent comes out of the socket of every device, for some seconds on
        end; return the seconds until that began.

        One partition may be stuck just as another one goes on, so a single update tells little.
        """
        began = time.monotonic()
        marks = [each.sent + 2 for each in self.devices]  # one may be on its way already
        since = [math.inf]

        def flows() -> bool:
            now = time.monotonic()
            steady = all(map(Device.follows, self.devices, marks))
            since[0] = min(since[0], now) if steady else math.inf
            return now - since[0] >= STEADY_SECONDS

        until(flows, SECONDS_TO_RECOVER)
        return since[0] - began

    def end(self) -> None:
        """Send nothing more, and let all that was sent come."""
        self._stop.set()
        self._sending.join()

    def assert_exactly_once(self) -> None:
        """What is stored, and what has come, is what was sent makes; each update once."""
        for each in self.devices:
            until(
                lambda each=each: each.seen and each.seen[-1][0] == each.sent, SECONDS_TO_RECOVER
            )
            sent = [(n, n) for n, _ in each.sums]
            assert self._stored(each, "data") == sent
            assert self._stored(each, "double") == [(n, 2 * v) for n, v in sent]
            assert self._stored(each, "sum") == each.sums
            # After a death some are told again, as they were.
            assert list(dict.fromkeys(each.seen)) == each.sums

    def _stored(self, device: Device, stream: str) -> list[tuple[int, float]]:
        found = self._platform.updates(StreamRef(device.id, stream))
        return [(each["lastUpdate"], each["channels"]["v"]["current-value"]) for each in found]

    def _send(self) -> None:
        while not self._stop.is_set():
            for each in self.devices:
                self._platform.put(StreamRef(each.id, "data"), each.sent + 1, v=each.sent + 1)
                each.sent += 1
            self._stop.wait(PAUSE_SECONDS)

    def _watch(self, device: Device) -> None:
        for frame in self._platform.follow(StreamRef(device.id, "sum")).updates(threading.Event()):
            update = json.loads(frame)
            device.seen.append((update["lastUpdate"], update["channels"]["v"]["current-value"]))
