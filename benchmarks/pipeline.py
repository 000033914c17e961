"""The pipeline alone, draining a backlog: updates and stored rows a second.

Each update wakes a chain of three composites: four rows stored and four updates emitted; or
other composites, by `--shape`.
The backlog is in the log before the pipeline starts; the clock runs from its first
transaction until everything is computed, what was put off for a while, too. So start-up does
not count and everything else does. Memory is what the pipeline's programs have at the end.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks import backlog, ground, processes
from benchmarks.machines import SparkMachines
from servioticy.settings import Settings, changed

LENGTH = 3
PAUSE_SECONDS = 0.02


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print a line for every number of partitions and devices and every batch size."""
    parser = argparse.ArgumentParser("servioticy bench pipeline")
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--devices", type=int, nargs="+", default=[100, 1])
    parser.add_argument("--updates", type=int, default=60_000, help="backlog, at most")
    parser.add_argument("--shape", choices=backlog.SHAPES, default="chain")
    parser.add_argument(
        "--warm", action="store_true", help="the pipeline knows all devices when it begins"
    )
    parser.add_argument(
        "--machines",
        action="store_true",
        help="on a Spark of workers, one for each partition, in place of the pipeline's own",
    )
    options = parser.parse_args(arguments)
    print(
        "partitions devices batch | updates/s  rows/s | processor, us an update | memory, MB | "
        "Postgres' log, bytes an update"
    )
    for partitions in options.partitions:
        with (
            ground.stores(settings, partitions) as own,
            _spark(own, partitions if options.machines else 0) as stores,
        ):
            for devices in options.devices:
                placed = backlog.devices(stores.settings, devices, LENGTH, options.shape)
                busy = len({partition for _id, partition in placed})
                if busy < partitions:
                    continue  # one device keeps one partition busy, however many there are
                _define(stores, devices)
                for batch in options.batches:
                    # Some hundred transactions are enough.
                    updates = min(options.updates, 2000 * batch)
                    print(
                        f"{partitions:10d} {devices:7d} {batch:5d} | "
                        + _drain(stores, placed, batch, updates, warm=options.warm),
                        flush=True,
                    )


@contextmanager
def _spark(stores: ground.Stores, workers: int) -> Iterator[ground.Stores]:
    """The same stores, with a Spark of so many workers that computes for them, if any."""
    if not workers:
        yield stores
        return
    machines = SparkMachines(stores.settings, stores.folder.path, workers)
    try:
        pids = {f"machine-{n}": each.pid for n, each in enumerate(machines.workers)}
        pids["master"] = machines.master.pid
        yield replace(stores, settings=machines.settings, pids={**stores.pids, **pids})
    finally:
        machines.kill()


def _define(stores: ground.Stores, devices: int) -> None:
    """Let all definitions take effect: they are no updates, and a first line would have them."""
    progress = backlog.Progress(stores.settings)
    begun = progress.total()
    with ground.pipeline(stores, stores.settings):
        while (first := progress.total()) <= begun:
            time.sleep(PAUSE_SECONDS)
        began = time.perf_counter()
        _wait(stores, progress)
        seconds = time.perf_counter() - began
    _tell("")
    left = progress.total() - first
    if left:
        print(f"{left} of the definitions of {devices} devices: {left / seconds:.0f}/s")
    progress.close()


def _drain(
    stores: ground.Stores,
    placed: Sequence[tuple[str, int]],
    batch: int,
    updates: int,
    *,
    warm: bool,
) -> str:
    progress = backlog.Progress(stores.settings)
    settings = changed(stores.settings, max_batch_updates=batch)
    if not warm:
        _fill(stores, placed, updates)
    begun = progress.total()
    with ground.pipeline(stores, settings) as pid:
        if warm:
            _fill(stores, placed, len(placed))
            _wait(stores, progress)
            begun = progress.total()
            _fill(stores, placed, updates)
        while (first := progress.total()) <= begun:
            time.sleep(PAUSE_SECONDS)
        rows, written = progress.rows(), progress.written_ahead()
        began, used = time.perf_counter(), _used(stores.pids, pid)
        _wait(stores, progress)
        seconds = time.perf_counter() - began
        used = {name: now - used.get(name, 0.0) for name, now in _used(stores.pids, pid).items()}
        memory = _memory(pid)
    _tell("")
    drained = progress.total() - first
    each = " ".join(f"{name} {1e6 * spent / drained:.0f}" for name, spent in used.items())
    each += " | " + " ".join(f"{name} {megabytes:.0f}" for name, megabytes in memory.items())
    made = progress.rows() - rows
    each += f" | {(progress.written_ahead() - written) / drained:.0f}"
    progress.close()
    return f"{drained / seconds:9.0f} {made / seconds:7.0f} | {each}"


def _fill(stores: ground.Stores, placed: Sequence[tuple[str, int]], updates: int) -> None:
    backlog.fill(stores.settings, placed, sum(backlog.ends(stores.settings)), updates)


def _wait(stores: ground.Stores, progress: backlog.Progress) -> None:
    """Return when all of the log is stored, and nothing is put off."""
    end = sum(backlog.ends(stores.settings))
    while (at := progress.total()) < end or progress.waiting():
        _tell(f"{end - at} are left")
        time.sleep(PAUSE_SECONDS)


def _used(stores: dict[str, int], pipeline: int) -> dict[str, float]:
    """Return the processor seconds so far, by program; the pipeline's by what runs in it."""
    used = {
        name: sum(map(processes.processor_seconds, processes.tree(pid)))
        for name, pid in stores.items()
    }
    for pid in processes.tree(pipeline):
        name = _part(pid)
        used[name] = used.get(name, 0.0) + processes.processor_seconds(pid)
    return used


def _memory(pipeline: int) -> dict[str, float]:
    """Return the megabytes of what runs in the pipeline, shared pages counted in parts."""
    megabytes: dict[str, float] = {}
    for pid in processes.tree(pipeline):
        name = _part(pid)
        megabytes[name] = megabytes.get(name, 0.0) + processes.memory_megabytes(pid)
    return megabytes


def _part(pid: int) -> str:
    command = processes.command(pid)
    if "zygote" in " ".join(command):
        return "sandbox"
    return "jvm" if command and Path(command[0]).name == "java" else "worker"


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{text:60s}\r")
        sys.stderr.flush()
