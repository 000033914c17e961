"""Every hostile program of the list and a thousand generated ones, on the real worker."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from sandbox_pools import a_pool

from sandbox import Fault
from sandbox.hostile.corpus import Hostile, fixed, program
from sandbox.hostile.generate import generated
from sandbox.hostile.judge import (
    GOOD,
    MAX_NEIGHBOUR_MS,
    RIGHT,
    Judge,
    a_call,
    children,
    descriptors,
    harmless,
    resident_kib,
)

pytestmark = pytest.mark.real
LIST = fixed()
HANG = "while(true){}"


@pytest.fixture(
    scope="module",
    params=[("v8", False), ("v8", True), ("quickjs", False)],
    ids=["v8, realm alone", "v8, allow-list", "quickjs, realm alone"],
)
def judge(request: pytest.FixtureRequest) -> Iterator[Judge]:
    engine, allow_list = request.param
    pool = a_pool(allow_list=allow_list, engine=engine)
    yield Judge(pool)
    pool.close()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def test_the_list_is_long_enough() -> None:
    """And names are unique, so that a failure can be found."""
    assert len(LIST) > 172
    assert len({each.name for each in LIST}) == len(LIST)


@pytest.mark.parametrize("hostile", LIST, ids=lambda each: each.name)
def test_a_hostile_program_is_contained(judge: Judge, hostile: Hostile) -> None:
    """A fault or a harmless value; its frame, its neighbour and the clock unharmed."""
    judge.verdicts.wrong.clear()
    judge.try_out(hostile)

    assert judge.verdicts.wrong == []


def test_generated_programs_are_contained(judge: Judge) -> None:
    """Five hundred each; any more by the command."""
    judge.verdicts.wrong.clear()
    judge.verdicts.counts.clear()
    judge.verdicts.neighbours.clear()
    start = 500 if judge.pool.options.allow_list else 0
    for number in range(start, start + 500):
        judge.try_out(generated(20, number))

    assert judge.verdicts.wrong == []
    counts = judge.verdicts.counts
    assert counts["timeout"] > 10  # they do bite
    assert counts["policy" if judge.pool.options.allow_list else "script-error"] > 50
    assert counts["syntax"] < 150  # and are mostly programs
    assert judge.verdicts.neighbour_ms(0.99) < MAX_NEIGHBOUR_MS


def test_the_generator_is_the_same_everywhere() -> None:
    """A number in a report names a program."""
    assert generated(1, 5) == generated(1, 5)
    assert len({generated(1, n).text for n in range(300)}) > 250


@pytest.mark.parametrize(
    ("document", "right"),
    [
        (b'{"channels":{"t":{"current-value":1}},"lastUpdate":2}', True),
        (b'{"channels":{"t":{"current-value":true}},"lastUpdate":2}', False),
        (b'{"channels":{"t":{"current-value":1,"x":2}},"lastUpdate":2}', False),
        (b'{"channels":{"t":{"current-value":"a"}},"lastUpdate":2}', False),
    ],
)
def test_the_judge_is_not_blind(document: bytes, right: bool) -> None:
    """What the tests above rest on."""
    assert harmless(type(RIGHT)(2, document), "number") is right
    assert not harmless(Fault("unheard of", ""), "number")
    assert not harmless(None, "number")


def test_nothing_grows_and_nothing_is_left_over_many_kills() -> None:
    """Sixty here; a thousand by `python -m sandbox.hostile --kills 1000`."""
    pool = a_pool(allow_list=False, budget_ms=20)
    try:
        judge = Judge(pool)
        judge.try_out(Hostile("first", "body", HANG))
        zygote = pool._zygote.pid
        assert zygote
        memory, files, ours = resident_kib(zygote), descriptors(zygote), descriptors(os.getpid())

        for number in range(30):
            judge.try_out(Hostile(f"kill {number}", "body", HANG))

        assert judge.verdicts.counts == {"timeout": 31}
        assert judge.verdicts.wrong == []
        assert resident_kib(zygote) - memory < 512
        assert (descriptors(zygote), descriptors(os.getpid())) == (files, ours)
        wait_until(lambda: len(children(zygote)) == 2)  # the tenant's last and the neighbour's
        workers = children(zygote)
    finally:
        pool.close()
    assert len(workers) == 2
    wait_until(lambda: not any(os.path.exists(f"/proc/{each}") for each in workers))


@pytest.mark.parametrize("engine", ["v8", "quickjs"])
def test_a_neighbour_in_another_partition_is_hardly_disturbed(engine: str) -> None:
    """Its answers are right, and 99 in 100 come within MAX_NEIGHBOUR_MS, at any time."""
    ours, theirs = a_pool(engine=engine), a_pool(allow_list=False, engine=engine)
    ends = threading.Event()

    def attack() -> None:
        number = 0
        while not ends.is_set():
            number += 1
            hang = Hostile(f"hang {number}", "body", f"for({number};;);")
            theirs.run("hostile", [a_call(program(hang))])

    attacker = threading.Thread(target=attack)
    try:
        judge = Judge(ours)
        judge.verdicts.neighbours.clear()
        attacker.start()
        for _ in range(1000):
            assert judge.neighbours() == [RIGHT]
            time.sleep(0.002)
    finally:
        ends.set()
        attacker.join()
        ours.close()
        theirs.close()

    assert judge.verdicts.neighbour_ms(0.99) < MAX_NEIGHBOUR_MS


@pytest.mark.parametrize("death", [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT, signal.SIGILL])
def test_a_worker_that_breaks_is_nobodys_end(death: signal.Signals) -> None:
    """The stand-in for corrupted memory: the process is gone in the middle of its life."""
    pool = a_pool()
    try:
        judge = Judge(pool)
        pool.run("hostile", [a_call(GOOD)])
        os.kill(pool._workers["hostile"].pid, death)

        judge.try_out(Hostile("after", "body", "return 1"))

        assert judge.verdicts.wrong == []
        assert judge.verdicts.counts == {"Value": 1}
    finally:
        pool.close()


def test_a_suspended_program_costs_its_tenant_alone() -> None:
    """Then it costs nobody anything: no process is asked."""
    pool = a_pool()
    try:
        hang = program(Hostile("hang", "body", HANG))
        outcomes = [pool.run("hostile", [a_call(hang)])[0][0] for _ in range(5)]
        kinds = [each.kind for each in outcomes if isinstance(each, Fault)]
        assert kinds == ["timeout"] * 3 + ["suspended"] * 2
        assert pool.suspended()[hang.id].tenant == "hostile"

        used = pool.cpu_seconds()["hostile"]
        _, good = pool.run("hostile", [a_call(hang), a_call(GOOD)])

        assert good == [RIGHT]
        assert pool.cpu_seconds()["hostile"] - used < 0.09  # not a budget more
        assert pool.program_cpu_seconds()[hang.id] > 0.25 > pool.program_cpu_seconds()[GOOD.id]
    finally:
        pool.close()
