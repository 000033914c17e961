"""Means of windows on Quix Streams: run by its own interpreter, with the work as JSON.

Updates are in the broker before, results go there; windows are kept in RocksDB, and their changes
in a topic of the broker.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

FIRST = 1_672_531_200_000
"""In ms since 1970: the past, as a broker refuses results of a time that is still to come."""
QUIET_SECONDS = 20.0


def main() -> None:
    """Print what it took."""
    work = json.loads(sys.argv[1])
    quix = importlib.import_module("quixstreams")
    with tempfile.TemporaryDirectory() as state:
        application = quix.Application(
            broker_address=work["broker"],
            consumer_group=work["name"],
            auto_offset_reset="earliest",
            state_dir=state,
            loglevel="ERROR",
        )
        given = application.topic(f"{work['name']}-in", timestamp_extractor=_time_of)
        with application.get_producer() as producer:
            keys = work["keys"]
            for at in range(work["updates"]):
                update = {"v": 20 + at * 7919 % 1000 / 100, "at": FIRST + 1000 * (at // keys)}
                producer.produce(given.name, json.dumps(update).encode(), b"air%d" % (at % keys))
            producer.flush()
        seen = _Seen()
        before = held("VmRSS")
        frame = application.dataframe(given).update(seen.update).apply(_value_of)
        size = timedelta(seconds=work["size"])
        if work["every"]:
            windows = frame.hopping_window(size, timedelta(seconds=work["every"]))
        else:
            windows = frame.tumbling_window(size)
        means = windows.mean().final().update(seen.result)
        means.to_topic(application.topic(f"{work['name']}-out"))
        application.run(timeout=QUIET_SECONDS)
    took, used = seen.last - seen.first, seen.used - seen.began
    more = held("VmHWM") - before
    told = {"seconds": took, "processor": used, "results": seen.results, "kib": more}
    print(json.dumps(told))


def _value_of(update: Any) -> float:
    return float(update["v"])


def _time_of(value: Any, _headers: Any, _timestamp: float, _kind: Any) -> int:
    return int(value["at"])


class _Seen:
    """When what was there: `run` waits for some seconds at the end, and for a group before."""

    def __init__(self) -> None:
        self.first = self.last = self.began = self.used = 0.0
        self.results = 0

    def update(self, _update: Any) -> None:
        """Note an update, which has just been read."""
        now = time.perf_counter()
        if not self.first:
            self.first, self.began = now, time.process_time()
        self.last, self.used = now, time.process_time()

    def result(self, _result: Any) -> None:
        """Note a result."""
        self.results += 1
        self.last, self.used = time.perf_counter(), time.process_time()


def held(name: str) -> int:
    """KiB of memory: now, or the most by now. What resource tells begins with the parent's."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith(name))


if __name__ == "__main__":
    main()
