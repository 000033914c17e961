"""Programs that cannot even be made ready, or checked: they are alone to blame."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

from hostile_programs import CALL, GOOD, RIGHT, a_program, between, is_right, processes
from sandbox_trees import (
    a_call,
    a_call_of,
    a_formula,
    a_function,
    an_event,
    events,
    kinds,
    once,
    result,
    values,
)

from sandbox import Program, SandboxPool
from sandbox.host.bursts import Bursts
from sandbox.host.zygote_client import ZygoteClient
from sandbox.trees import Node, Wiring

SPAWN = ZygoteClient.spawn


# The allow-list would refuse most of what is tried here.
POOL_OPTIONS = {"allow_list": False}


READ = "function(){while(true){}}()"
"""What calls itself runs when it is asked for its text."""


def an_odd_one(code: str = READ) -> Program:
    return replace(a_function(""), id=code, channels=(replace(GOOD.channels[0], code=code),))


def test_a_program_that_hangs_while_it_is_compiled_is_alone_to_blame(pool: SandboxPool) -> None:
    """Whoever is of the same region, and whether it is ever woken or not."""
    hangs = an_odd_one()
    (grown,) = pool.grow("tenant", [a_call_of(between(hangs), *events(2))])

    assert values(grown) == [[1, 1], [2, 2]]
    assert kinds(grown) == {"emitted": 4, "timeout": 2}
    died = processes(pool)
    asleep = Wiring("asleep", (*CALL.wiring.nodes, Node((), hangs, ((1,),))))
    (grown,) = pool.grow("tenant", [a_call_of(asleep, *events(3))])
    assert values(grown) == RIGHT
    assert result(once(pool, a_call(hangs, an_event()), "tenant")) == "timeout"
    assert processes(pool) == died  # it is not tried again for a while
    assert is_right(pool)


def test_in_a_step_only_its_own_program_is_made_ready(pool: SandboxPool) -> None:
    """Others of its region have nothing to do with it."""
    call = a_call_of(between(an_odd_one()), an_event(4))

    assert result(once(pool, call)) == 5
    assert processes(pool) == 0


def test_a_document_is_checked_in_one_process(pool: SandboxPool) -> None:
    """Five hundred programs: a millisecond or two each, not a process each."""
    programs = [a_formula(f"{number}+1") for number in range(500)]
    programs[333] = a_program("1 +* 1")
    with (
        mock.patch.object(Bursts, "has", return_value=True),
        mock.patch.object(ZygoteClient, "spawn", autospec=True, side_effect=SPAWN) as spawn,
    ):
        found = pool.check_all(programs)

    assert spawn.call_count == 2  # and one that waits for the next document
    assert [at for at, problems in enumerate(found) if problems] == [333]
    assert found[333][0].startswith("channel t: line 1")


def test_a_program_that_cannot_be_checked_hides_no_other(pool: SandboxPool) -> None:
    """A failing frame is asked again, one by one."""
    found = pool.check_all([GOOD, an_odd_one(), a_program("1 +* 1"), GOOD])

    assert [bool(each) for each in found] == [False, True, True, False]
    assert found[1] == ["the program cannot be checked: timeout"]
    assert found[2][0].startswith("channel t: line 1")
