"""What processes use; the only importer of psutil."""

from __future__ import annotations

import time

import psutil

BYTES_A_MEGABYTE = 1024 * 1024


def tree(pid: int) -> list[int]:
    """Return the process and all below it, parents before their children.

    Empty when it is gone.
    """
    try:
        below = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [pid, *(each.pid for each in below)]


def command(pid: int) -> list[str]:
    """Return the words of its command line; none when it is gone, or a zombie."""
    try:
        return list(psutil.Process(pid).cmdline())
    except psutil.Error:
        return []


def processor_seconds(pid: int, *, ended: bool = False) -> float:
    """Return the processor seconds of one process so far; 0 when it is gone.

    With those of its children that have `ended`.
    """
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    below = times.children_user + times.children_system if ended else 0.0
    return float(times.user + times.system + below)


def with_postgres(pid: int) -> float:
    """Return the processor seconds of this process and of a Postgres, with what it has ended."""
    first, *below = tree(pid)
    every = [processor_seconds(first, ended=True), *map(processor_seconds, below)]
    return time.process_time() + sum(every)


def memory_megabytes(pid: int) -> float:
    """Return the memory with shared pages counted in parts, so that a sum over processes is
    honest.

    0 when it is gone, or where we may not read it: only root may of a sandbox's worker.
    """
    try:
        return float(psutil.Process(pid).memory_full_info().pss) / BYTES_A_MEGABYTE
    except psutil.Error:
        return 0.0


def costs(before: dict[str, float], after: dict[str, float], count: int) -> str:
    """Return the microseconds of processor time by layer, of each of so many."""
    each = {name: 1e6 * (after[name] - before[name]) / max(1, count) for name in before}
    return ", ".join(f"{name} {value:.1f}" for name, value in each.items()) + " µs"
