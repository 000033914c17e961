"""Means of windows on Bytewax: run by its own interpreter, with the work as JSON.

Updates come from memory and results stay there: it has neither a broker nor a store here.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

FIRST = datetime(2027, 1, 1, tzinfo=UTC)


def main() -> None:
    """Print what it took."""
    work = json.loads(sys.argv[1])
    keys = work["keys"]
    updates = [
        json.dumps({"v": 20 + at * 7919 % 1000 / 100, "at": at // keys, "k": at % keys}).encode()
        for at in range(work["updates"])
    ]
    results: list[bytes] = []
    flow = dataflow(work, updates, results)
    before = held("VmRSS")
    processor, began = time.process_time(), time.perf_counter()
    importlib.import_module("bytewax.testing").run_main(flow)
    took = time.perf_counter() - began
    used = time.process_time() - processor
    more = held("VmHWM") - before
    told = {"seconds": took, "processor": used, "results": len(results), "kib": more}
    print(json.dumps(told))


def dataflow(work: dict[str, Any], updates: list[bytes], results: list[bytes]) -> Any:
    """Return what reads, cuts, adds up and writes."""
    operators = importlib.import_module("bytewax.operators")
    windowing = importlib.import_module("bytewax.operators.windowing")
    testing = importlib.import_module("bytewax.testing")
    flow = importlib.import_module("bytewax.dataflow").Dataflow("windows")
    size = timedelta(seconds=work["size"])
    if work["every"]:
        every = timedelta(seconds=work["every"])
        windower = windowing.SlidingWindower(length=size, offset=every, align_to=FIRST)
    else:
        windower = windowing.TumblingWindower(length=size, align_to=FIRST)
    clock = windowing.EventClock(
        lambda update: FIRST + timedelta(seconds=update["at"]), timedelta(0)
    )
    stream = operators.input("in", flow, testing.TestingSource(updates, 1000))
    read = operators.map("read", stream, json.loads)
    keyed = operators.key_on("key", read, lambda update: f"air{update['k']}")
    means = windowing.fold_window(
        "mean",
        keyed,
        clock,
        windower,
        lambda: (0, 0.0),
        lambda state, update: (state[0] + 1, state[1] + update["v"]),
        lambda one, other: (one[0] + other[0], one[1] + other[1]),
    )
    written = operators.map("write", means.down, _written)
    operators.output("out", written, testing.TestingSink(results))
    return flow


def _written(result: tuple[str, tuple[int, tuple[int, float]]]) -> bytes:
    _key, (window, (count, total)) = result
    return json.dumps({"window": window, "mean": total / count}).encode()


def held(name: str) -> int:
    """KiB of memory: now, or the most by now. What resource tells begins with the parent's."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith(name))


if __name__ == "__main__":
    main()
