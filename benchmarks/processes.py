"""What processes use; the only importer of psutil."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import psutil

BYTES_A_MEGABYTE = 1024 * 1024
KILOBYTES_A_MEGABYTE = 1024


class Memory(NamedTuple):
    """In megabytes, pages that several processes have counted in parts."""

    own: float
    """Without what is shared on purpose."""
    shared: float
    """Of segments that are made for sharing, with a size that was chosen before: the buffers of
    Postgres, which it fills with pages of files as they are read, and keeps."""


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


def memory(pid: int) -> Memory:
    """Return what a process has of memory; none when it is gone, or where we may not read it."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return Memory(0.0, 0.0)
    found = {name: int(rest.split()[0]) for name, rest in (line.split(":") for line in lines)}
    shared = found["Pss_Shmem"]
    return Memory((found["Pss"] - shared) / KILOBYTES_A_MEGABYTE, shared / KILOBYTES_A_MEGABYTE)


def connections(pid: int, port: int) -> int:
    """Return how many of its connections lead to a port of this machine; 0 when it is gone."""
    try:
        every = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return 0
    return sum(1 for each in every if each.raddr and each.raddr.port == port)


def costs(before: dict[str, float], after: dict[str, float], count: int) -> str:
    """Return the microseconds of processor time by layer, of each of so many."""
    each = {name: 1e6 * (after[name] - before[name]) / max(1, count) for name in before}
    return ", ".join(f"{name} {value:.1f}" for name, value in each.items()) + " µs"
