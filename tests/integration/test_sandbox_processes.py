"""Processes of the pool that die, fill up or are forked: nobody is blamed, nothing is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import pytest
from process_walks import alive
from sandbox_pools import GOOD, RIGHT, a_pool, is_right
from sandbox_trees import (
    a_call,
    a_call_of,
    a_formula,
    a_function,
    an_event,
    events,
    grow_all,
    once,
    result,
    values,
)
from waiting import until

from sandbox import SandboxPool
from sandbox.host.knowledge import Knowledge
from sandbox.host.worker_client import GIVEN_PART, Budget, Failure
from sandbox.host.workers import TOGETHER_SECONDS
from sandbox.trees import Call, Grown, Node, Wiring

NOTE_PROGRAMS = Knowledge.note_programs


# The allow-list would refuse most of what is tried here.
POOL_OPTIONS = {"allow_list": False}


@contextlib.contextmanager
def told_when_busy(pid: int, seconds: float, sign: signal.Signals) -> Iterator[None]:
    """Meanwhile the process gets the signal, once it has used so much of the processor."""
    clock = (~pid << 3) | 2
    before = time.clock_gettime(clock)

    def tell() -> None:
        until(lambda: time.clock_gettime(clock) > before + seconds)
        os.kill(pid, sign)

    teller = threading.Thread(target=tell)
    teller.start()
    yield
    teller.join()


def test_a_starved_worker_is_given_more_time(pool: SandboxPool) -> None:
    """A stopped process stands for a busy machine: it burnt nothing, so nobody is blamed."""
    assert is_right(pool)
    pid = pool._workers["tenant"].pid
    os.kill(pid, signal.SIGSTOP)

    assert is_right(pool)
    assert not alive(pid)


def test_who_is_below_its_budget_is_not_cut_on_a_busy_machine() -> None:
    """It was given a part of that at first, then nothing more.

    QuickJS counts the time in which it runs by itself.
    """
    patient = a_pool(allow_list=False, budget_ms=800)

    def seconds_of(turns: int) -> float:
        loop = a_function(f"var t=0;for(var i=0;i<{turns};i++)t+=i;return 1")
        before = patient.growing_seconds_of("tenant").programs
        assert result(once(patient, a_call(loop, an_event()))) == 1
        return patient.growing_seconds_of("tenant").programs - before

    turns = 50_000
    while seconds_of(turns) < 0.1:
        turns *= 2
    turns = int(turns * 0.55 / seconds_of(turns))

    worker = patient._workers["tenant"].pid
    with told_when_busy(worker, 0.3, signal.SIGSTOP):
        seconds_of(turns)

    assert set(patient.kills) == {"timeout"}, "it was cut, and asked again"
    assert patient.suspended() == {}
    patient.close()


def test_a_worker_killed_between_frames_is_replaced(pool: SandboxPool) -> None:
    """The next frame notices before it is sent."""
    assert is_right(pool)
    pid = pool._workers["tenant"].pid
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid))

    assert is_right(pool)
    assert pool._workers["tenant"].pid != pid


def test_a_worker_killed_during_a_frame_is_nobodys_fault(pool: SandboxPool) -> None:
    """A crash counts only if it happens again."""
    turns = 400_000 if pool.options.engine == "quickjs" else 1_500_000  # some 30 ms
    slow = a_call(a_function(f"var t=0;for(var i=0;i<{turns};i++)t+=i;return 1"), an_event())
    assert is_right(pool)
    worker = pool._workers["tenant"]
    with told_when_busy(worker.pid, 0.005, signal.SIGKILL):
        outcome = once(pool, slow)

    assert result(outcome) == 1
    assert pool.suspended() == {}
    assert pool._workers["tenant"].pid != worker.pid


def test_what_a_process_used_that_ended_by_itself_is_charged(pool: SandboxPool) -> None:
    """Nobody can ask it any more. Else whoever ends its process would compute for nothing."""
    patient = a_pool(allow_list=False, budget_ms=1500, engine=pool.options.engine)
    assert is_right(patient)
    before = patient.growing_seconds_of("tenant").programs
    with told_when_busy(patient._workers["tenant"].pid, 0.2, signal.SIGKILL):
        once(patient, a_call(a_function("while(true){}"), an_event()))

    assert patient.kills["crash"] == 1
    twice = 0.2 + GIVEN_PART * 1.5
    assert patient.growing_seconds_of("tenant").programs - before > twice
    patient.close()


def test_a_killed_zygote_is_started_again(pool: SandboxPool) -> None:
    """Its workers go with it."""
    assert is_right(pool)
    worker, zygote = pool._workers["tenant"].pid, pool._zygote.pid
    assert zygote
    os.kill(zygote, signal.SIGKILL)
    until(lambda: not alive(worker))

    assert is_right(pool)
    assert pool._zygote.pid != zygote


def test_nothing_outlives_its_owner(tmp_path: Path) -> None:
    """An owner killed with -9 cannot clean up."""
    script = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from test_sandbox_processes import *\n"
        "pool = a_pool(); assert is_right(pool, 'a') and is_right(pool, 'b')\n"
        "workers = [w.pid for w in pool._workers.values()]\n"
        "print(pool._zygote.pid, pool._spare.pid, *workers, flush=True)\n"
        "sys.stdin.read()\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", script, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert owner.stdout
    pids = [int(each) for each in owner.stdout.readline().split()]
    assert len(pids) == 4
    assert all(alive(pid) for pid in pids)
    owner.kill()
    owner.communicate()

    until(lambda: not any(alive(pid) for pid in pids))


def test_tenants_never_share_a_process(pool: SandboxPool) -> None:
    """Not even one after the other."""
    small = a_pool(max_workers=1)
    seen = []
    for tenant in ("a", "b", "a"):
        assert is_right(small, tenant)
        seen.append(small._workers[tenant].pid)
        assert list(small._workers) == [tenant]
    small.close()

    assert len(set(seen)) == 3


def test_who_comes_often_keeps_its_process(pool: SandboxPool) -> None:
    """However many others come once in a while; of those the last ones have theirs."""
    small = a_pool(max_workers=2, engine=pool.options.engine)
    try:
        for _ in range(2):
            assert is_right(small, "often")
            time.sleep(1.5 * TOGETHER_SECONDS)
        pid = small._workers["often"].pid
        for number in range(4):
            assert is_right(small, f"once {number}")
            assert set(small._workers) == {"often", f"once {number}"}
        assert is_right(small, "often")
        assert small._workers["often"].pid == pid
    finally:
        small.close()


def test_a_worker_waits_for_who_comes_next(pool: SandboxPool) -> None:
    """Nobody waits for its start, and nobody gets one that another tenant has had."""
    pool.close()
    pool.prepare()
    seen = []
    for tenant in ("a", "b", "c"):
        waiting = pool._spare.pid
        pool.prepare()
        assert pool._spare.pid == waiting
        assert is_right(pool, tenant)
        assert pool._workers[tenant].pid == waiting
        seen.append(waiting)
    assert pool._spare.pid not in seen
    assert len(set(seen)) == 3


def test_one_that_waits_may_die(pool: SandboxPool) -> None:
    """With its zygote or alone; another is started instead."""
    pool.prepare()
    waiting, zygote = pool._spare.pid, pool._zygote.pid
    assert waiting
    assert zygote
    os.kill(waiting, signal.SIGKILL)
    until(lambda: not alive(waiting))
    assert is_right(pool, "a")

    next_one = pool._spare.pid
    assert next_one
    os.kill(zygote, signal.SIGKILL)
    until(lambda: not alive(next_one))
    assert is_right(pool, "b")


def test_a_child_after_fork_has_processes_of_its_own(pool: SandboxPool) -> None:
    """Spark forks its Python workers; two must not speak on one socket."""
    assert is_right(pool)
    child = os.fork()
    if child == 0:
        right = is_right(pool)
        pool.close()
        os._exit(0 if right else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert is_right(pool)


def test_a_worker_full_of_programs_is_replaced(
    pool: SandboxPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one that knows only what is used; nobody is blamed."""
    monkeypatch.setattr("sandbox.host.knowledge.MAX_MEMORY", 100_000)
    assert is_right(pool)
    first = pool._workers["tenant"].pid
    calls = [a_call(a_formula(f"{number}"), an_event()) for number in range(100)]
    for _ in range(2):
        again = grown_in_frames(pool, calls)
        assert [values(each) for each in again] == [[[n]] for n in range(100)]
    assert pool._workers["tenant"].pid != first
    assert pool.suspended() == {}


def test_a_region_that_is_large_alone_stays_in_its_worker(
    pool: SandboxPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker would have to be told all of it again, at every frame."""
    monkeypatch.setattr("sandbox.host.knowledge.MAX_MEMORY", 100_000)
    nodes = GOOD.wiring.nodes
    large, other = (Wiring(f"large {n}", (*nodes, *[Node()] * n)) for n in (1000, 999))

    def process_after(wiring: Wiring) -> int:
        assert values(pool.grow("tenant", [a_call_of(wiring, *events(3))])[0]) == RIGHT
        return pool._workers["tenant"].pid

    first = process_after(large)
    assert process_after(large) == first
    assert process_after(GOOD.wiring) == first
    assert process_after(other) == first  # it is full from now on
    assert process_after(GOOD.wiring) != first


def grown_in_frames(pool: SandboxPool, calls: Sequence[Call]) -> list[Grown]:
    """What came of calls of one tree each: some at once, and by itself what had no time then."""
    found: list[Grown] = []
    for first in range(0, len(calls), 20):
        some = calls[first : first + 20]
        grown = pool.grow("tenant", some)
        found += [
            each if each.made and not each.failed else grow_all(pool, call)
            for call, each in zip(some, grown, strict=True)
        ]
    return found


def test_thousands_of_programs_stay_in_one_worker(pool: SandboxPool) -> None:
    """Two thousand here, ten in the benchmark: compiled once, and well within the heap."""
    calls = [a_call(a_formula(f"{number}+1"), an_event()) for number in range(2000)]
    first = grown_in_frames(pool, calls)
    worker = pool._workers["tenant"].pid

    with mock.patch.object(Knowledge, "question_of") as compiled:
        again = grown_in_frames(pool, calls)

    assert [each.made for each in again] == [each.made for each in first]
    assert [values(each) for each in first] == [[[n + 1]] for n in range(2000)]
    assert pool._workers["tenant"].pid == worker
    compiled.assert_not_called()


def test_equal_programs_are_compiled_once(pool: SandboxPool) -> None:
    """A thousand devices with one document are one program in their tenant's process."""
    calls = [
        a_call(a_formula("$0+1"), an_event(number), own=None if number % 2 else 0)
        for number in range(100)
    ]
    with mock.patch.object(Knowledge, "note_programs", autospec=True) as compiled:
        compiled.side_effect = NOTE_PROGRAMS
        assert len(pool.grow("tenant", calls)) == 100

    assert [len(call.args[1]) for call in compiled.call_args_list] == [1]


def test_an_answer_that_is_garbage_is_a_crash(pool: SandboxPool) -> None:
    """From a worker that a script has taken over."""
    assert is_right(pool)
    client = pool._workers["tenant"]
    client._reader._buffer += b"\xff\xff\xff\xff" + b"x" * 10

    answer = client.grow([GOOD], 40, Budget(100, 100))

    assert isinstance(answer, Failure)
    assert answer.kind == "crash"
    until(lambda: not alive(client.pid))
