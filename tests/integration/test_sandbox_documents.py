"""Whole documents of code: what is as large as the API takes, and who waits for it."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from unittest import mock

import pytest
from sandbox_pools import a_pool
from sandbox_trees import a_call, a_call_of, an_event, kinds, once, result
from waiting import until

from sandbox import ChannelCode, HadToWait, Program, SandboxPool, TookTooLong
from sandbox.host.allowance import Allowance
from sandbox.host.bursts import BURST_SECONDS
from sandbox.host.worker_client import Failure, WorkerClient
from sandbox.host.zygote_client import ZygoteClient
from sandbox.trees import Grown, Node, Wake, Wiring

SPAWN = ZygoteClient.spawn
CHECK = WorkerClient.check

SMALL = "function(A){return 1}"
FULL = "function(A){" + "function a(){}" * 280 + " return 1}"
COSTLY = {
    "nested blocks": "function(A){"
    + "".join(f"{{var a{n};" for n in range(350))
    + "}" * 350
    + "}",
    "labels": "function(A){" + "".join(f"a{n}:" for n in range(700)) + "1}",
    "patterns": "function(A){" + "({a=1}=1);" * 380 + "}",
    "variables": "function(A){var " + ",".join(f"a{n}" for n in range(700)) + "}",
    "semicolons": "function(A){return 1" + ";" * 4000 + "}",
    "closing semicolons": SMALL + ";" * 4000,
    "regular expressions": "function(A){return /" + "{1" * 1900 + "/}",
    "arrows": "function(A){return " + "a=>" * 1300 + "1}",
    "parentheses": "function(A){return " + "(a=" * 1300 + "1" + ")" * 1300 + "}",
    "comments": "function(A){return 1 1}" + ";/*;*/" * 670,
}


@pytest.fixture
def pool() -> Iterator[SandboxPool]:
    pool = a_pool()
    yield pool
    pool.close()


def a_document(streams: int, channels: int, code: str) -> list[Program]:
    """No two codes are the same."""
    return [
        Program(
            f"{stream} {channels} {code}",
            "function",
            ("A",),
            tuple(
                ChannelCode(f"c{n}", f"{code}//{stream} {n}", "number") for n in range(channels)
            ),
        )
        for stream in range(streams)
    ]


@pytest.mark.parametrize("code", COSTLY.values(), ids=COSTLY)
def test_no_text_costs_more_than_its_length(pool: SandboxPool, code: str) -> None:
    """64 times 4 KiB in one frame: no answer in its time is `cannot be checked`."""
    found = pool.check_all(a_document(64, 1, code[:4080]))

    assert not [each for problems in found for each in problems if "cannot be checked" in each]


@pytest.mark.parametrize(("streams", "channels"), [(250, 1), (1, 250)])
def test_a_megabyte_of_code_is_checked(pool: SandboxPool, streams: int, channels: int) -> None:
    """Whether it is of many streams or of one: it is not the memory for all of it at once."""
    assert pool.check_all(a_document(streams, channels, FULL)) == [[]] * streams


def test_the_same_code_in_many_channels_is_looked_at_once(pool: SandboxPool) -> None:
    """An alias makes 4 MB of some kilobytes."""
    channels = tuple(ChannelCode(f"c{n}", FULL, "number") for n in range(1000))

    assert pool.check_all([Program("p", "function", ("A",), channels)], within=60) == [[]]


def test_nobody_waits_for_a_long_document(pool: SandboxPool) -> None:
    """A short one is checked while the long one is under way."""
    pool.check_all(a_document(1, 1, SMALL))
    found: list[list[list[str]]] = []
    document = a_document(500, 1, FULL)
    long = threading.Thread(target=lambda: found.append(pool.check_all(document, tenant="a")))
    lock = pool._checking._long.lock
    long.start()
    while not lock._held and long.is_alive():
        time.sleep(0.001)

    assert pool.check_all(a_document(1, 1, SMALL), tenant="b") == [[]]
    assert long.is_alive()
    long.join()
    assert found == [[[]] * 500]


def test_a_document_has_its_time_and_not_more(pool: SandboxPool) -> None:
    """The next one finds everything as it was."""
    document = a_document(250, 1, FULL)
    pool.check_all(a_document(1, 1, SMALL))

    with pytest.raises(TookTooLong):
        pool.check_all(document, within=0.2)
    assert pool.check_all(document, within=120) == [[]] * 250


def test_waiting_for_others_counts(pool: SandboxPool) -> None:
    """A request is answered in its time, whoever is before it."""
    with (
        pool._checking._short.lock.held("another", Allowance()),
        pytest.raises(HadToWait),
    ):
        pool.check_all(a_document(1, 1, SMALL), within=0.1)


def spawned_by(pool: SandboxPool, document: list[Program], tenant: str) -> list[tuple[bool, bool]]:
    """Of each process that was started to look at it: whether it only parses, and is patient."""
    found: list[tuple[bool, bool]] = []

    def noted(zygote: ZygoteClient, checks: bool, is_patient: bool) -> tuple[socket.socket, int]:
        connection, pid = SPAWN(zygote, checks, is_patient)
        found.append((checks, is_patient))
        return connection, pid

    with mock.patch.object(ZygoteClient, "spawn", noted):
        assert pool.check_all(document, tenant=tenant) == [[]] * len(document)
    return found


@pytest.fixture
def used_up(pool: SandboxPool) -> str:
    """A tenant that has had its burst, of a pool that has looked at something."""
    pool.check_all(a_document(1, 1, SMALL), tenant="another")
    pool._checking._bursts.charge("attacker", 2 * BURST_SECONDS)
    return "attacker"


def test_whose_burst_is_used_up_has_only_what_nobody_wants(
    pool: SandboxPool, used_up: str
) -> None:
    """Both processes that look at its documents: the allow-list's, and the engine's."""
    assert spawned_by(pool, a_document(2, 1, FULL), used_up) == [(True, True), (False, True)]
    checker = pool._checking._patient.approval._checker

    assert checker is not None
    assert os.sched_getscheduler(checker.pid) == os.SCHED_IDLE
    assert os.getsid(checker.pid) == checker.pid


def test_whose_documents_were_short_is_not_held_up_by_who_fills_the_other_lane(
    pool: SandboxPool, used_up: str
) -> None:
    """It has a checker that is there already, and a process that waits for it."""
    with pool._checking._patient.lock.held(used_up, Allowance()):
        assert spawned_by(pool, a_document(2, 1, SMALL), "innocent") == [(False, False)]


def test_a_document_goes_on_with_what_is_left_where_its_burst_ends(pool: SandboxPool) -> None:
    """Nobody has to know beforehand how long one takes."""
    pool.check_all(a_document(1, 1, SMALL), tenant="another")
    pool._checking._bursts.charge("tenant", BURST_SECONDS - 0.001)

    found = spawned_by(pool, a_document(100, 1, FULL), "tenant")

    assert (True, False) in found  # the checker of long ones, for the first portion
    assert (True, True) in found


def test_who_waits_for_what_is_left_is_told_in_its_time(pool: SandboxPool, used_up: str) -> None:
    """And the document is not said to be at fault."""
    with (
        pool._checking._patient.lock.held("another", Allowance()),
        pytest.raises(HadToWait),
    ):
        pool.check_all(a_document(1, 1, SMALL), within=0.1, tenant=used_up)


def test_a_caller_says_how_long_it_waits_for_what_is_left(pool: SandboxPool, used_up: str) -> None:
    """It may hold what others wait for as well. For its burst nobody needs patience."""
    with pool._checking._patient.lock.held("another", Allowance()):
        with pytest.raises(HadToWait):
            pool.check_all(a_document(1, 1, SMALL), tenant=used_up, patience=0.0)
        assert pool.check_all(a_document(1, 1, SMALL), tenant="innocent", patience=0.0) == [[]]


def test_several_of_one_tenant_may_wait_for_what_is_left(pool: SandboxPool, used_up: str) -> None:
    """Where there is nothing else to do each has its turn: nobody has to come again."""
    found: list[list[list[str]]] = []
    sent = [
        threading.Thread(
            target=lambda n=n: found.append(
                pool.check_all(a_document(n, 1, SMALL), tenant=used_up, patience=30.0)
            )
        )
        for n in range(1, 5)
    ]
    with pool._checking._patient.lock.held("another", Allowance()):
        for each in sent:
            each.start()
        until(lambda: len(pool._checking._patient.lock._waiting[used_up]) == len(sent))
    for each in sent:
        each.join()

    assert sorted(map(len, found)) == [1, 2, 3, 4]


def test_trying_again_goes_on_where_it_was(pool: SandboxPool) -> None:
    """Whatever a document takes, it comes through in portions: here in one each time."""
    document = a_document(130, 1, SMALL)
    asked: list[list[int]] = []

    def check(
        worker: WorkerClient, texts: Sequence[bytes], allowance: Allowance
    ) -> list[list[tuple[str, str]]] | Failure:
        if asked[-1]:
            raise allowance.spent()
        asked[-1].append(len(texts))
        return CHECK(worker, texts, allowance)

    found: list[list[str]] = []
    with mock.patch.object(WorkerClient, "check", check):
        while not found and len(asked) < 10:
            asked.append([])
            with contextlib.suppress(TookTooLong):
                found = pool.check_all(document, tenant="tenant")

    assert found == [[]] * 130
    assert asked == [[64], [64], [2]] * 2  # the allow-list, and the engine


def test_a_start_that_takes_long_ends_with_its_request_and_goes_on(
    pool: SandboxPool, used_up: str
) -> None:
    """And it is not begun anew by whoever comes next."""
    started: list[bool] = []
    pid = os.posix_spawn("/bin/true", ["true"], {})
    os.waitpid(pid, 0)
    ours, theirs = socket.socketpair()

    def silent(_: ZygoteClient, checks: bool, _is_patient: bool) -> tuple[socket.socket, int]:
        started.append(checks)
        return ours, pid

    with theirs, mock.patch.object(ZygoteClient, "spawn", silent):
        for _ in range(2):
            with pytest.raises(HadToWait):
                pool.check_all(a_document(1, 1, SMALL), within=0.1, tenant=used_up)
    assert started == [True]


def test_a_program_that_was_found_well_is_not_looked_at_again(pool: SandboxPool) -> None:
    """By the same tenant: what others have found nobody can tell by the time it takes."""
    document = a_document(3, 1, SMALL)
    pool.check_all(document, tenant="tenant")

    assert spawned_by(pool, [*document, *document], "tenant") == []
    assert spawned_by(pool, document, "other") == [(False, False)]


def test_a_program_that_was_found_wrong_is_looked_at_again(pool: SandboxPool) -> None:
    """Each time it is told what is wrong with it, wherever it stands."""
    wrong, right = a_document(2, 1, "function(A){return 1 1}"), a_document(1, 1, SMALL)
    for _ in range(2):
        found = pool.check_all([*wrong, *right, wrong[0]], tenant="tenant")

        assert [len(each) for each in found] == [1, 1, 0, 1]
        assert found[0] == found[3]


def test_the_first_look_at_programs_counts_for_a_run_and_is_not_lost(pool: SandboxPool) -> None:
    """A partition is not held by it; what was learned until then is known the next time."""
    calls = [a_call(each, an_event()) for each in a_document(250, 1, FULL)]
    cut = 0
    grown: list[Grown] = []
    while not grown:
        try:
            grown = pool.grow("tenant", calls, within=0.5)
        except TookTooLong:
            cut += 1
            assert cut < 50, "it makes no way"

    assert cut > 0
    assert all(kinds(each) == {"emitted": 1} for each in grown if each.made)
    assert pool.suspended() == {}


def test_the_first_look_at_a_region_is_not_lost_either(pool: SandboxPool) -> None:
    """All its programs have to be known before a tree of it is grown."""
    programs = a_document(250, 1, FULL)
    wakes = tuple(Wake(number, number + 1, 0) for number in range(len(programs)))
    nodes = [Node(code=each, inputs=((0,),)) for each in programs]
    call = a_call_of(Wiring("large", (Node(wakes), *nodes)), an_event())
    grown: list[Grown] = []
    for _ in range(50):
        try:
            grown = pool.grow("tenant", [call], within=0.5)
        except TookTooLong:
            continue
        break

    assert [kinds(each) for each in grown] == [{"emitted": 250}]


def test_a_function_that_ends_in_thousands_of_semicolons_runs(pool: SandboxPool) -> None:
    """The allow-list takes them, and the worker must not end of them."""
    code = SMALL + ";" * 4000
    program = Program("p", "function", ("A",), (ChannelCode("t", code, "number"),))

    assert result(once(pool, a_call(program, an_event()))) == 1
