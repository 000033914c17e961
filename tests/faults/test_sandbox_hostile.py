"""Every hostile program of the list and some hundred generated ones, on the real worker."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
from collections.abc import Iterator

import pytest
from sandbox_pools import a_pool
from waiting import until

from sandbox import Program, SandboxOptions, SandboxPool
from sandbox.hostile.corpus import Hostile, fixed, program
from sandbox.hostile.generate import generated
from sandbox.hostile.judge import (
    GOOD,
    Judge,
    a_call,
    children,
    descriptors,
    harmless,
    is_like,
    kind,
    once,
    resident_kib,
    right,
    shown,
)
from sandbox.trees import Ended, Made

LIST = fixed()
HANG = "while(true){}"

BUDGET_MS = SandboxOptions().budget_ms
"""The platform's: many of these hang, and burn it all, several times each."""


def a_judge(pool: SandboxPool) -> Judge:
    """One without a watch: how long things take is measured by `python -m sandbox.hostile`."""
    return Judge(pool, math.inf)


@pytest.fixture(
    scope="module",
    params=[("v8", False), ("v8", True), ("quickjs", False)],
    ids=["v8, realm alone", "v8, allow-list", "quickjs, realm alone"],
)
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    engine, allow_list = request.param
    pool = a_pool(allow_list=allow_list, engine=engine, budget_ms=BUDGET_MS)
    yield a_judge(pool)
    pool.close()


def test_the_list_is_long_enough() -> None:
    """And names are unique, so that a failure can be found."""
    assert len(LIST) > 172
    assert len({each.name for each in LIST}) == len(LIST)


@pytest.mark.parametrize("hostile", LIST, ids=lambda each: each.name)
def test_a_hostile_program_is_contained(judge: Judge, hostile: Hostile) -> None:
    """A fault or a harmless value; its tree, its neighbour and the clock unharmed."""
    judge.verdicts.wrong.clear()
    judge.try_out(hostile)

    assert judge.verdicts.wrong == []


def test_generated_programs_are_contained(judge: Judge) -> None:
    """A hundred and fifty each; any more by the command."""
    tried = 150
    judge.verdicts.wrong.clear()
    judge.verdicts.counts.clear()
    start = 500 if judge.pool.options.allow_list else 0
    for number in range(start, start + tried):
        judge.try_out(generated(20, number))

    assert judge.verdicts.wrong == []
    counts = judge.verdicts.counts
    assert counts["timeout"] > 0  # they do bite
    refused = counts["policy" if judge.pool.options.allow_list else "script-error"]
    assert refused > tried // 10
    assert counts["syntax"] < tried // 2  # and are mostly programs


def test_the_generator_is_the_same_everywhere() -> None:
    """A number in a report names a program."""
    assert generated(1, 5) == generated(1, 5)
    assert len({generated(1, n).text for n in range(300)}) > 250


@pytest.mark.parametrize(
    ("document", "fits"),
    [
        (b'{"channels":{"t":{"current-value":1}},"lastUpdate":2}', True),
        (b'{"channels":{"t":{"current-value":true}},"lastUpdate":2}', False),
        (b'{"channels":{"t":{"current-value":1,"x":2}},"lastUpdate":2}', False),
        (b'{"channels":{"t":{"current-value":"a"}},"lastUpdate":2}', False),
    ],
)
def test_the_judge_is_not_blind(document: bytes, fits: bool) -> None:
    """What the tests above rest on."""
    made = Made(0, 0, 1, 2, document)
    assert harmless(made, "number") is fits
    assert not harmless(Ended(1, "unheard of", 1, 0, 0), "number")
    assert not harmless(made._replace(timestamp=3), "number")
    again = Made(0, 2, 3, 2, document)
    assert is_like(made, again)
    assert not is_like(made, again._replace(document=document + b" "))
    assert not is_like(made, Ended(1, "script-error", 1, 0, 0))
    lacked = Ended(1, "script-error", 1, 0, 0, "InternalError: out of memory")
    assert is_like(lacked, made) and is_like(made, lacked)


def test_nothing_grows_and_nothing_is_left_over_many_kills() -> None:
    """Sixty here; a thousand by `python -m sandbox.hostile --kills 1000`."""
    pool = a_pool(allow_list=False, budget_ms=50)
    try:
        judge = a_judge(pool)
        judge.try_out(Hostile("first", "body", HANG))
        zygote = pool._zygote.pid
        assert zygote
        memory, files, ours = resident_kib(zygote), descriptors(zygote), descriptors(os.getpid())

        for number in range(30):
            judge.try_out(Hostile(f"kill {number}", "body", HANG))

        assert judge.verdicts.counts == {"timeout": 31}
        assert judge.verdicts.wrong == []
        assert resident_kib(zygote) - memory < 512
        assert descriptors(zygote) == files
        # What earlier tests have left open may be closed meanwhile.
        assert descriptors(os.getpid()) <= ours
        workers = {each.pid for each in pool._workers.values()}
        assert 1 <= len(workers) <= 2  # the neighbour's, and the last tenant's where it has one
        until(lambda: set(children(zygote)) == workers | {pool._spare.pid})
    finally:
        pool.close()
    until(lambda: not any(os.path.exists(f"/proc/{each}") for each in workers))


@pytest.mark.parametrize("engine", ["v8", "quickjs"])
def test_a_neighbour_in_another_partition_is_not_held_up(engine: str) -> None:
    """It has all its answers while a program hangs that is not ended meanwhile."""
    ours = a_pool(engine=engine)
    theirs = a_pool(allow_list=False, engine=engine, budget_ms=600_000)
    hang = program(Hostile("hang", "body", HANG))
    attacker = threading.Thread(target=theirs.grow, args=("hostile", [a_call(hang)]))
    try:
        judge = a_judge(ours)
        attacker.start()
        until(lambda: "hostile" in theirs._workers)
        for _ in range(200):
            assert judge.neighbours()
        assert attacker.is_alive()
    finally:
        while attacker.is_alive():
            with contextlib.suppress(KeyError, ProcessLookupError):
                os.kill(theirs._workers["hostile"].pid, signal.SIGKILL)
            attacker.join(0.05)
        ours.close()
        theirs.close()


@pytest.mark.parametrize("death", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT, signal.SIGILL])
def test_a_worker_that_breaks_is_nobodys_end(death: signal.Signals) -> None:
    """The stand-in for corrupted memory: the process is gone in the middle of its life."""
    pool = a_pool()
    try:
        judge = a_judge(pool)
        once(pool, "hostile", GOOD)
        os.kill(pool._workers["hostile"].pid, death)

        judge.try_out(Hostile("after", "body", "return 1"))

        assert judge.verdicts.wrong == []
        assert judge.verdicts.counts == {"Value": 1}
    finally:
        pool.close()


def outcome_of(pool: SandboxPool, hang: Program) -> str:
    """What comes of the program, run once."""
    return kind(once(pool, "hostile", hang))


def test_a_suspended_program_costs_its_tenant_alone() -> None:
    """Then it costs nobody anything: no process is asked."""
    pool = a_pool()
    try:
        hang = program(Hostile("hang", "body", HANG))
        kinds = [outcome_of(pool, hang)]
        while kinds[-1] == "timeout":  # more than three where a busy machine has starved it
            kinds.append(outcome_of(pool, hang))
        assert kinds[3:] and kinds[-1] == outcome_of(pool, hang) == "suspended"
        assert pool.suspended()[hang.id].tenant == "hostile"

        used = pool.program_cpu_seconds()[hang.id]
        assert shown(once(pool, "hostile", GOOD)) == right(1, 2)
        assert pool.program_cpu_seconds()[hang.id] == used > pool.program_cpu_seconds()[GOOD.id]
    finally:
        pool.close()
