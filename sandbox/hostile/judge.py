"""Runs hostile programs between innocent ones, and says what went wrong.

What must be true: it ends as a known fault or makes a value of the declared type, and the same
when it is asked again; what is computed before and after it from the same input is right, in
its tree and the next, and so is another device of its tenant; so is another tenant, in its old
process; and it takes no longer than it may.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sandbox.host.pool import SandboxPool
from sandbox.host.refusals import KILL_CLASS
from sandbox.hostile.corpus import Hostile, program
from sandbox.program import FAULT_KINDS, Binding, ChannelCode, Program
from sandbox.trees import Bounds, Call, Ended, Event, Made, Node, Tree, Wake, Wiring

PATH = ("channels", "t", "current-value")
GOOD = Program(
    "good",
    "expression",
    ("a",),
    (ChannelCode("t", "[$0,1,2].map(x=>x*2).reduce((a,b)=>a+b)+Math.max(0,$0)", "number"),),
    bindings=(Binding("$0", 0, PATH),),
)
_SEES = (
    "function(A){var seen='';for(var key in A)seen+=key;"
    "return JSON.stringify(A)+seen+Object.keys(A.channels)+[1,2].concat(3)+({}).x}"
)
WITNESS = Program("witness", "function", ("A",), (ChannelCode("t", _SEES, "string"),))
"""Tells all that it can see of its input."""

MAX_SECONDS = 4.0
"""For one program with all its retries, on a busy machine; alone it is a tenth."""

KILLS_A_TENANT = 8

MAX_NEIGHBOUR_MS = 50.0
"""Of 99 in 100 innocent frames, on a busy machine."""

BOUNDS = Bounds(hops=10, computations=100)

Outcome = Made | Ended


def an_update(at: int) -> bytes:
    """The update that all hostile programs get; `at` 2."""
    return b'{"channels":{"t":{"current-value":4}},"lastUpdate":%d}' % at


def right(node: int, at: int) -> tuple[int, int, bytes]:
    """What a good program makes of it, as node, time and document."""
    return node, at, b'{"channels":{"t":{"current-value":18}},"lastUpdate":%d}' % at


def seen(node: int, at: int) -> tuple[int, int, bytes]:
    """What a witness makes of it."""
    text = an_update(at).decode() + "channelslastUpdatet1,2,3undefined"
    document = {"channels": {"t": {"current-value": text}}, "lastUpdate": at}
    return node, at, json.dumps(document, separators=(",", ":")).encode()


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

    def __init__(self, pool: SandboxPool, max_seconds: float = MAX_SECONDS) -> None:
        self.pool = pool
        self._max_seconds = max_seconds
        self.verdicts = Verdicts()
        self._tenant = 0
        self._kills = 0
        self.neighbours()
        self._neighbour = pool._workers["neighbour"].pid

    def try_out(self, hostile: Hostile, type_: str = "number") -> None:
        """Run one program and note its verdict and all that is wrong."""
        started = time.monotonic()
        tenant = f"hostile {self._tenant}"
        attacker = program(hostile, type_)
        first, after, other = self._surrounded(tenant, attacker)
        seconds = time.monotonic() - started
        self.verdicts.slowest = max(self.verdicts.slowest, seconds)
        attacked = next(each for each in first if each.node == ATTACKED)
        self.verdicts.counts[kind(attacked)] += 1
        ended = kind(attacked) in KILL_CLASS
        if not ended and not is_like(attacked, once(self.pool, tenant, attacker)):
            self._note(hostile, f"gave {attacked}, and then something else")
        if not harmless(attacked, type_):
            self._note(hostile, f"gave {attacked}")
        around = [shown(each) for each in first if each.node != ATTACKED]
        if around != [right(1, 2), seen(2, 2), right(4, 2), seen(5, 2)]:
            self._note(hostile, f"changed its tree: {around}")
        if [shown(each) for each in after] != [right(1, 3), seen(2, 3)]:
            self._note(hostile, f"changed the next tree: {after}")
        if [shown(each) for each in other] != [right(1, 2)]:
            self._note(hostile, f"changed another device: {other}")
        if seconds > self._max_seconds:
            self._note(hostile, f"took {seconds:.1f} s")
        self._look_at_the_neighbour(hostile)
        self._change_tenant(tenant)

    def _change_tenant(self, tenant: str) -> None:
        """Go on as another one where this one has ended some processes.

        That is asked of the pool: a program may end several, more where the machine is busy,
        and the last one among them.
        """
        kills = sum(self.pool.kills.values())
        if kills - self._kills >= KILLS_A_TENANT:
            if tenant in self.pool._workers:
                self.pool._workers.end(tenant)
            self._kills = kills
            self._tenant += 1

    def neighbours(self) -> bool:
        """Whether the innocent tenant's frame of one is right; it is timed."""
        started = time.monotonic()
        outcome = once(self.pool, "neighbour", GOOD)
        self.verdicts.neighbours.append(time.monotonic() - started)
        return shown(outcome) == right(1, 2)

    def _surrounded(self, tenant: str, attacker: Program) -> Sequence[Sequence[Outcome]]:
        """What comes of the tree with the program, of the next one, and of another device."""
        names = ["", "before", "witness before", attacker.id, "after", "witness after", ""]
        trees: list[Tree] = [[Event(0, 2, an_update(2))], [Event(6, 3, an_update(3))]]
        call = Call(surrounded(attacker), names, [], trees, BOUNDS)
        (grown,) = self.pool.grow(tenant, [call])
        found = [list[Outcome](each) for each in grown.made]
        if grown.failed:
            found.append(self._steps(tenant, call))
        else:
            found[0] += [each for each in grown.ended if each.kind != "emitted"]
        for later in (*[replace(call, trees=trees[1:])][len(found) - 1 :], a_call(GOOD)):
            (grown,) = self.pool.grow(tenant, [later])
            found.append([*grown.made[0]] if grown.made else [*grown.ended])
        return found

    def _steps(self, tenant: str, call: Call) -> list[Outcome]:
        """What comes of the first tree, step by step."""
        (event,), *_ = call.trees
        steps = [event._replace(only=each.number) for each in call.wiring.nodes[event.node].wakes]
        return [step_of(self.pool, tenant, replace(call, trees=[[each]])) for each in steps]

    def _look_at_the_neighbour(self, hostile: Hostile) -> None:
        if not self.neighbours():
            self._note(hostile, "changed its neighbour")
        if self.pool._workers["neighbour"].pid != self._neighbour:
            self._note(hostile, "ended its neighbour")
            self._neighbour = self.pool._workers["neighbour"].pid

    def _note(self, hostile: Hostile, what: str) -> None:
        self.verdicts.wrong.append(f"{hostile.name}: {what[:300]}: {hostile.text[:500]}")


ATTACKED = 3


def surrounded(attacker: Program) -> Wiring:
    """Two innocent composites before it, two after it, all of one input; and what the first two
    compute of another."""
    inner = [GOOD, WITNESS, attacker, GOOD, WITNESS]
    woken = tuple(Wake(number, number + 1, 0) for number in range(len(inner)))
    nodes = [Node(code=each, inputs=((0, 6),)) for each in inner]
    return Wiring(attacker.id, (Node(woken), *nodes, Node(woken[:2])))


def a_call(of: Program, trees: int = 1) -> Call:
    """A program computed over one update, or over as many as there are `trees`."""
    wiring = Wiring(f"only {of.id}", (Node((Wake(0, 1, 0),)), Node(code=of, inputs=((0,),))))
    events: list[Tree] = [[Event(0, 2 + n, an_update(2 + n))] for n in range(trees)]
    return Call(wiring, ["", of.id], [], events, BOUNDS)


def once(pool: SandboxPool, tenant: str, of: Program) -> Outcome:
    """What comes of a program computed once."""
    call = a_call(of)
    return step_of(pool, tenant, replace(call, trees=[[call.trees[0][0]._replace(only=0)]]))


def step_of(pool: SandboxPool, tenant: str, call: Call) -> Outcome:
    """What comes of one computation."""
    (grown,) = pool.grow(tenant, [call])
    made = [each for tree in grown.made for each in tree]
    return made[0] if made else grown.ended[0]


def kind(outcome: Outcome) -> str:
    """A word for the count."""
    return outcome.kind if isinstance(outcome, Ended) else "Value"


def shown(outcome: Outcome) -> tuple[int, int, bytes]:
    """An outcome as it is compared."""
    if isinstance(outcome, Made):
        return outcome.node, outcome.timestamp, outcome.document
    return outcome.node, 0, f"{outcome.kind} {outcome.message}".encode()


def is_like(first: Outcome, again: Outcome) -> bool:
    """Whether two computations came to the same.

    A busy machine may have ended the second, and how much memory is left for one depends on what
    the process has computed before.
    """
    if kind(again) in KILL_CLASS or lacked_memory(first) or lacked_memory(again):
        return True
    return shown(first)[1:] == shown(again)[1:]


def lacked_memory(outcome: Outcome) -> bool:
    """Whether the engine told the script that there is no memory left: it goes on."""
    return isinstance(outcome, Ended) and "out of memory" in outcome.message


def harmless(outcome: Outcome, type_: str) -> bool:
    """A known fault with a short message, or a value of the channel's type."""
    if isinstance(outcome, Ended):
        return outcome.kind in FAULT_KINDS and len(outcome.message) < 1000
    if outcome.timestamp != 2:
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
