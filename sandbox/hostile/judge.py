"""Runs hostile programs between innocent ones, and says what went wrong.

What must be true: an outcome is a known fault or a value of the declared type; the steps
before and after it in its frame are right; so is another tenant, in its old process; and
it takes no longer than it may.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.host.pool import KILL_CLASS, SandboxPool
from sandbox.hostile.corpus import Hostile, program
from sandbox.program import (
    FAULT_KINDS,
    Binding,
    Call,
    ChannelCode,
    Computation,
    Fault,
    Outcome,
    Program,
    Value,
)

UPDATE = b'{"channels":{"t":{"current-value":4}},"lastUpdate":2}'
PATH = ("channels", "t", "current-value")
GOOD = Program(
    "good",
    "expression",
    ("a",),
    (ChannelCode("t", "[$0,1,2].map(x=>x*2).reduce((a,b)=>a+b)+Math.max(0,$0)", "number"),),
    bindings=(Binding("$0", 0, PATH),),
)
RIGHT = Value(2, b'{"channels":{"t":{"current-value":18}},"lastUpdate":2}')
MAX_SECONDS = 4.0
"""For one program with all its retries, on a busy machine; alone it is a tenth."""

KILLS_A_TENANT = 10

MAX_NEIGHBOUR_MS = 50.0
"""Of 99 in 100 innocent frames, on a busy machine."""


@dataclass(slots=True)
class Verdicts:
    """What came of many programs."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: float = 0.0
    neighbours: list[float] = field(default_factory=list)
    """Seconds of the innocent tenant's frames."""

    def neighbour_ms(self, share: float) -> float:
        """A percentile of the innocent tenant's times."""
        return 1000 * sorted(self.neighbours)[int(len(self.neighbours) * share)]


class Judge:
    """Puts programs to a pool as hostile tenants, and watches the tenant "neighbour".

    One tenant after the other: what has ended a dozen processes is not let in any more.
    """

    def __init__(self, pool: SandboxPool) -> None:
        self.pool = pool
        self.verdicts = Verdicts()
        self._kills = 0
        self.neighbours()
        self._neighbour = pool._workers["neighbour"].pid

    def try_out(self, hostile: Hostile, type_: str = "number") -> None:
        """Run one program and note its verdict and all that is wrong."""
        started = time.monotonic()
        tenant = f"hostile {self._kills // KILLS_A_TENANT}"
        before, attacked, after = self.pool.run(
            tenant, [a_call(GOOD), a_call(program(hostile, type_)), a_call(GOOD)]
        )
        seconds = time.monotonic() - started
        self.verdicts.slowest = max(self.verdicts.slowest, seconds)
        self.verdicts.counts[kind(attacked[0])] += 1
        if kind(attacked[0]) in KILL_CLASS:
            self._kills += 1
            if self._kills % KILLS_A_TENANT == 0:
                self.pool._workers.end(tenant)
        if not harmless(attacked[0], type_):
            self._note(hostile, f"gave {attacked[0]}")
        if before != [RIGHT] or after != [RIGHT]:
            self._note(hostile, f"changed its frame: {before} {after}")
        if seconds > MAX_SECONDS:
            self._note(hostile, f"took {seconds:.1f} s")
        if self.neighbours() != [RIGHT]:
            self._note(hostile, "changed its neighbour")
        if self.pool._workers["neighbour"].pid != self._neighbour:
            self._note(hostile, "ended its neighbour")
            self._neighbour = self.pool._workers["neighbour"].pid

    def neighbours(self) -> list[Outcome]:
        """The innocent tenant's frame of one, timed."""
        started = time.monotonic()
        outcomes = self.pool.run("neighbour", [a_call(GOOD)])[0]
        self.verdicts.neighbours.append(time.monotonic() - started)
        return outcomes

    def _note(self, hostile: Hostile, what: str) -> None:
        self.verdicts.wrong.append(f"{hostile.name}: {what[:300]}: {hostile.text[:500]}")


def a_call(of: Program, steps: int = 1) -> Call:
    """A program computed once over one update, or over as many equal ones as `steps`."""
    computed = tuple(Computation(0, 2 + n, 2 + n, (0,)) for n in range(steps))
    return Call(of, None, None, (UPDATE,), computed)


def kind(outcome: Outcome) -> str:
    """A word for the count."""
    return outcome.kind if isinstance(outcome, Fault) else type(outcome).__name__


def harmless(outcome: Outcome, type_: str) -> bool:
    """A known fault with a short message, or a value of the channel's type."""
    if isinstance(outcome, Fault):
        return outcome.kind in FAULT_KINDS and len(outcome.message) < 1000
    if not isinstance(outcome, Value) or outcome.timestamp != 2:
        return False
    document = json.loads(outcome.document)
    value = document["channels"]["t"]["current-value"]
    if set(document) != {"channels", "lastUpdate"} or set(document["channels"]["t"]) > {
        "current-value"
    }:
        return False
    if type_ == "string":
        return isinstance(value, str) and len(value) <= 65_536
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def children(pid: int) -> set[int]:
    """The living processes whose parent this is."""
    found = set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            state, parent = fields.rpartition(")")[2].split()[:2]
            if int(parent) == pid and state != "Z":
                found.add(int(folder.name))
    return found


def resident_kib(pid: int) -> int:
    """Memory of a process, in KiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def descriptors(pid: int) -> int:
    """How many files a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
