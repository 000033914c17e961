"""How a pool runs its workers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxOptions:
    """How much a pool allows, and how it protects itself."""

    engine: str = "v8"
    """"v8" or "quickjs"."""

    clock: str = "frozen"
    """"frozen": a script finds the trigger's time. "running": each look at the clock moves it on
    by a millisecond from there, so that a loop that waits comes to an end. Never real time."""

    budget_ms: float = 100
    """Milliseconds that a frame may take; of the processor, where the machine is busy."""

    budget_ms_per_update: float = 1.0
    """Milliseconds added for each step of a frame."""

    max_workers: int = 64
    """Processes of tenants alive at once."""

    idle_seconds: float = 60
    """A worker that had nothing to do for so long is ended."""

    unprotected: bool = False
    """Whether workers serve where the machine does not allow the required layers."""

    allow_list: bool = True
    """Whether programs are parsed and held to the allow-list before they run."""

    nice: int = 0
    """How much lower the priority of its processes is than that of its owner."""

    heap_mib: int = 64
    """What a script may have of memory, in MiB."""
