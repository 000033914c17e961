"""Procedures that programs run: what is asked of them, and what comes of each atom."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import orjson
import pytest
from workflow_builders import a_queue, a_workflow, an_atom

from functions.programs import Asking, Known, Running
from functions.steps import LATER_MS, Failure, Result, Task
from servioticy.ports.programs import Manifest, Program, ProgramOutput, Question, Reply

WORKFLOW = a_workflow("score", procedures={"score": {"operator": {"name": "model", "version": 3}}})
TASK = Task(a_queue(tenant=7, step=0), WORKFLOW, "7.2")
SECONDS = 60.0
MANIFEST = Manifest(
    "python", False, batch=2, wait_seconds=0, answer_seconds=1, memory_bytes=2**30, processes=1
)
Answer = Callable[[Question], Reply | None]


def reply(question: Question, *outputs: tuple[int, bytes], error: str = "") -> Reply:
    made = [ProgramOutput(event, None, channels) for event, channels in outputs]
    return Reply(question.id, made, b'{"kept":1}', error, 0.25)


class Programs:
    """Answers at once by a function; None: not at all."""

    def __init__(self, answer: Answer, has_room: bool = True) -> None:
        self.asked: list[Question] = []
        self._answer = answer
        self._has_room = has_room
        self._replied = threading.Condition()
        self._replies: list[Reply] = []
        self.is_closed = False

    def ask(self, question: Question) -> bool:
        self.asked.append(question)
        answer = self._answer(question) if self._has_room else None
        with self._replied:
            self._replies += [] if answer is None else [answer]
            self._replied.notify_all()
        return self._has_room

    def replies(self, _wait_seconds: float) -> Sequence[Reply]:
        with self._replied:
            self._replied.wait_for(lambda: self._replies, 0.05)
            found, self._replies = self._replies, []
        return found

    def forget(self, program: Program) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.is_closed = True


class Registry:
    def __init__(self, manifest: Manifest | None = MANIFEST) -> None:
        self.manifest = manifest
        self.asked = 0

    def manifests(self, programs: Sequence[Program]) -> Mapping[Program, Manifest]:
        self.asked += 1
        return {} if self.manifest is None else dict.fromkeys(programs, self.manifest)


@contextmanager
def running(
    programs: Programs, registry: Registry | None = None, seconds: float = SECONDS
) -> Iterator[Running]:
    found = Running(Asking(programs), Known(registry or Registry()), seconds)
    yield found
    found.close()
    assert programs.is_closed


def worked(programs: Programs, *bodies: bytes, seconds: float = SECONDS) -> Result:
    with running(programs, seconds=seconds) as step:
        return step.work(TASK, [an_atom(n, body=each) for n, each in enumerate(bodies)])


def test_an_atom_is_an_event_and_what_is_made_of_it_are_atoms() -> None:
    """None, one or several of each; nothing is kept for the next one."""
    programs = Programs(lambda q: reply(q, (1, b'{"a":1}'), (1, b'{"a":2}')))

    result = worked(programs, b'{"n":0}', b'{"n":1}')

    assert result.done == {0: [], 1: [b'{"a":1}', b'{"a":2}']}
    (question,) = programs.asked
    assert question.program == Program(7, "model", 3, lane=2)
    assert (question.state, question.composite) == (None, "w/score")
    assert orjson.loads(question.events[1]) == {
        "stream": "score",
        "timestamp": 1_000,
        "channels": {"n": 1},
        "version": 1,
        "correlation": "w.1",
    }
    assert result.processor_us == 250_000
    assert result.mebibyte_ms >= 1_024


def test_as_many_are_asked_together_as_the_program_takes() -> None:
    programs = Programs(reply)

    result = worked(programs, *[b"{}"] * 5)

    assert [len(each.events) for each in programs.asked] == [2, 2, 1]
    assert result.done == {n: [] for n in range(5)}


def test_an_atom_that_a_program_fails_on_spoils_no_other() -> None:
    """Asked together they fail together: so each is asked alone."""

    def answer(question: Question) -> Reply:
        if any(b'"bad"' in each for each in question.events):
            return reply(question, error="ValueError: bad")
        return reply(question, (0, b"{}"))

    result = worked(Programs(answer), b'{"x":"bad"}', b'{"x":"good"}')

    assert result.done == {1: [b"{}"]}
    assert result.failed == {0: Failure("error: ValueError: bad")}


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ([b'{"a":"%b"}' % (b"x" * 32_768)], "error: an atom has at most 32768 bytes"),
        ([b'{"a":"\\u0000"}'], "error: an atom has a NUL in it"),
        ([b"{}"] * 101, "error: more than 100 atoms are made of one"),
    ],
)
def test_what_is_no_atom_is_the_programs_fault(made: list[bytes], reason: str) -> None:
    result = worked(Programs(lambda q: reply(q, *[(0, each) for each in made])), b"{}")

    assert result.failed == {0: Failure(reason)}


def test_where_there_is_no_room_nobody_is_to_blame() -> None:
    result = worked(Programs(reply, has_room=False), b"{}", b"{}")

    assert (result.later, result.failed) == (dict.fromkeys([0, 1], LATER_MS), {})


def test_a_program_that_does_not_answer_has_had_an_attempt() -> None:
    """And what was not asked meanwhile is given back: others may see it soon."""
    programs = Programs(lambda _: None)

    result = worked(programs, b"{}", b"{}", b"{}", seconds=0.05)

    reason = "the program has not answered in time"
    assert result.failed == {n: Failure(reason) for n in (0, 1)}
    assert result.later == {2: 0}


def test_a_late_answer_is_nobodys() -> None:
    """It is not the next one's, and it is not kept."""

    def answer(question: Question) -> Reply | None:
        return None if len(programs.asked) == 1 else reply(question, (0, b'{"own":1}'))

    programs = Programs(answer)
    asking = Asking(programs)
    program = Program(7, "model", 3)
    with pytest.raises(TimeoutError):
        asking.ask(program, "w/score", [b"{}"], time.monotonic())
    with programs._replied:
        programs._replies.append(reply(programs.asked[0], (0, b'{"late":1}')))
    found = asking.ask(program, "w/score", [b"{}"], time.monotonic() + SECONDS)

    assert found is not None
    assert found.outputs == [ProgramOutput(0, None, b'{"own":1}')]
    assert asking._replies == {}
    asking.close()


def test_a_program_that_is_gone_is_told() -> None:
    """What is known of it is known for a while, and not asked for each time."""
    registry = Registry(None)
    with running(Programs(reply), registry) as step:
        for _ in range(3):
            result = step.work(TASK, [an_atom(1)])

    assert result.failed == {1: Failure("there is no such version of this program any more")}
    assert registry.asked == 1
