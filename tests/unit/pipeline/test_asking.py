"""When programs are asked, how much at once, and whose questions are open."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import pytest
from asked_programs import KnownToAll, a_manifest, answer
from memory import MemoryPlatform
from new_service_objects import new_service_object
from put_off_runs import append
from python_evaluator import PythonEvaluator

from pipeline.batching.means import Means
from pipeline.engine import Engine
from pipeline.limits import Limits
from pipeline.state import chains
from pipeline.state.asking import LOST_SECONDS
from pipeline.state.chains import MAX_AHEAD
from pipeline.state.manifests import UNKNOWN_SECONDS, AskedPrograms
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.evaluators.every import every
from servioticy.domain.records import AnswerRecord, UpdateRecord, read_record
from servioticy.errors import Unavailable
from servioticy.ports.programs import Manifest, Program, Question, Reply

CHANNELS = {"v": {"type": "number"}}


class Asked:
    """Programs that answer when a test says so."""

    def __init__(self) -> None:
        self.questions: list[Question] = []
        self.room = 10**6
        self._replies: list[Reply] = []

    def ask(self, question: Question) -> bool:
        if len(self.questions) >= self.room:
            return False
        self.questions.append(question)
        return True

    def replies(self, _wait_seconds: float) -> Sequence[Reply]:
        found, self._replies = self._replies, []
        return found

    def answer(self, question: Question) -> Reply:
        reply = answer(question)
        self._replies.append(reply)
        return reply

    def forget(self, _program: Program) -> None:
        raise AssertionError

    def close(self) -> None:
        raise AssertionError


class Bench:
    """Objects with streams that programs compute, and a task whose clock a test sets."""

    def __init__(
        self,
        manifest: Manifest | None = None,
        streams: int = 1,
        objects: int = 1,
        name: str = "counts",
        owners: Mapping[str, int] | None = None,
    ) -> None:
        self.platform, self.programs, self.now = MemoryPlatform(), Asked(), 1000.0
        self.known = KnownToAll({} if manifest is None else {3: manifest})
        for number in range(objects):
            tenant = self.platform.tenants.tenant_of(
                self.platform.tenants.create_tenant(f"t{number}")
            )
            operator = {"name": name, "version": 3, "inputs": ["d0"]}
            computed = {
                f"p{n}": {"channels": CHANNELS, "operator": operator} for n in range(streams)
            }
            document = {"streams": {"d0": {"channels": CHANNELS}, **computed}}
            new = new_service_object(tenant or 0, f"so{number}", document)
            self.platform.changes.create(replace(new, operator_owners=owners or {}))
        self.asked = AskedPrograms(self.programs, self.known)
        engine = Engine(
            every(PythonEvaluator(lambda _trigger, _documents: 1)),
            1000,
            10**6,
            Limits(100, 10_000),
            clock=lambda: self.now,
            now=lambda: 1e9 + self.now,
        )
        self.task = Task(
            0,
            self.platform.partition_store(argument_names),
            lambda: self.platform.output(0),
            engine,
            means=Means(programs=self.asked),
        )
        self.work()

    def put(self, *values: int, to: str = "so0") -> None:
        append(self.platform, [((to, "d0"), 10 + value, value) for value in values])
        self.work()

    def work(self) -> None:
        log, progress = self.platform.state.log[0], self.platform.state.progress
        first = progress[0].next_offset if 0 in progress else 0
        self.task.take([Row(at, log[at]) for at in range(first, len(log))])

    def verdicts(self) -> dict[str, int]:
        """How many computations ended how."""
        found = self.platform.state.verdicts.items()
        return {kind: times for (_, kind), (times, _last) in found}

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.work()


def values_of(question: Question) -> list[int]:
    return [json.loads(each)["channels"]["v"] for each in question.events]


def test_as_many_are_asked_about_as_the_program_takes() -> None:
    bench = Bench(a_manifest(batch=3))
    bench.put(10, 11, 22, 23)

    question = bench.programs.questions[0]
    assert values_of(question) == [10, 11, 22]
    assert question.composite == "so0/p0"
    assert question.state is None
    first = json.loads(question.events[0])
    assert first["stream"] == "so0/d0"
    assert {"timestamp": 20, "channels": {"v": 10}, "version": 3}.items() <= first.items()

    bench.programs.answer(question)
    bench.work()
    bench.work()
    assert [values_of(each) for each in bench.programs.questions[1:]] == [[23]]
    assert bench.programs.questions[1].state == answer(question).state


def test_it_is_waited_for_more_as_long_as_the_program_says() -> None:
    bench = Bench(a_manifest(batch=2)._replace(wait_seconds=5.0))
    bench.put(10)
    assert bench.programs.questions == []
    assert bench.task.patience <= 5.0
    bench.put(11)
    assert len(bench.programs.questions) == 1, "so many have come"

    alone = Bench(a_manifest(batch=2)._replace(wait_seconds=5.0))
    alone.put(10)
    alone.passes(5.0)
    assert len(alone.programs.questions) == 1, "it has waited so long"


def test_what_waits_for_a_program_that_is_not_there_is_an_error() -> None:
    """It was removed, granted no more, or its owner is gone; once it is there it is asked."""
    bench = Bench()
    bench.put(10, 11)
    bench.work()
    assert bench.programs.questions == []
    assert bench.verdicts() == {"collected": 2, "error": 2}
    told = {kind: last for (_, kind), (_, last) in bench.platform.state.verdicts.items()}
    assert b"no version 3 of the program counts any more" in told["error"]

    bench.known.manifests_by_version = {3: a_manifest()}
    bench.passes(UNKNOWN_SECONDS)
    bench.put(22)
    assert [values_of(each) for each in bench.programs.questions] == [[22]]


def test_whose_program_it_is_goes_by_what_its_document_meant() -> None:
    bench = Bench(a_manifest(), name="alice/counts", owners={"alice": 77})
    bench.put(10)
    (question,) = bench.programs.questions
    assert question.program == Program(question.program.tenant, "alice/counts", 3, 77)


def test_where_it_cannot_be_known_who_is_there_others_go_on() -> None:
    class Away:
        def manifests(self, _programs: Sequence[Program]) -> Mapping[Program, Manifest]:
            raise Unavailable("away")

    bench = Bench(a_manifest())
    bench.asked.known = Away()
    bench.task._forget()  # it begins with what it has now
    bench.put(10)
    assert bench.programs.questions == []
    assert bench.platform.state.last_updates, "it is stored all the same"


def test_no_room_is_asked_again() -> None:
    bench = Bench(a_manifest())
    bench.programs.room = 0
    bench.put(10)
    bench.programs.room = 1
    bench.passes(0.1)
    assert len(bench.programs.questions) == 1


def test_what_is_wrong_with_several_is_asked_in_halves() -> None:
    bench = Bench(a_manifest())
    bench.put(10, 6, 11, 22)  # the second one raises
    for _ in range(20):
        for each in bench.programs.questions[-1:]:
            bench.programs.answer(each)
        bench.work()
    asked = [values_of(each) for each in bench.programs.questions]
    assert asked == [[10, 6, 11, 22], [10, 6], [10], [6, 11], [6], [11], [22]]
    assert bench.verdicts() == {"collected": 4, "emitted": 3, "error": 1}


def test_an_answer_that_is_lost_is_asked_again() -> None:
    bench = Bench(a_manifest())
    bench.put(10)
    bench.programs.answer(bench.programs.questions[0])
    bench.work()
    lost = bench.platform.state.log[0].pop()
    assert b'"answer"' in lost
    bench.passes(LOST_SECONDS - 1)
    assert len(bench.programs.questions) == 1
    bench.passes(2)
    assert len(bench.programs.questions) == 2


def test_what_programs_take_of_the_processor_is_noted_by_stream() -> None:
    bench = Bench(a_manifest())
    bench.put(10)
    bench.programs.answer(bench.programs.questions[0])
    bench.work()
    assert bench.asked.seconds == {"so0/p0@1": 0.001}
    for wrong in (float("nan"), float("inf"), -1.0):
        bench.asked.note("so0/p0@1", wrong)
    assert bench.asked.seconds == {"so0/p0@1": 0.001}


def test_an_answer_is_taken_in_though_no_rows_come() -> None:
    """Whoever waits for rows is woken and rests: there is something to do then."""
    bench = Bench(a_manifest())
    bench.put(10)
    assert not bench.task.has_work
    bench.programs.answer(bench.programs.questions[0])

    assert bench.task.has_work
    assert bench.task.patience == 0.0
    bench.task.rest()
    assert b'"answer"' in bench.platform.state.log[0][-1]


def test_several_are_asked_each_behind_the_one_before() -> None:
    """Where the program has not answered, only what fills a question."""
    bench = Bench(a_manifest(batch=2))
    bench.put(10, 11, 22, 23, 34)
    first, second = bench.programs.questions
    assert [values_of(each) for each in (first, second)] == [[10, 11], [22, 23]]
    assert (first.after, second.after) == (None, first.id)

    reply = bench.programs.answer(first)
    bench.programs.answer(second._replace(state=reply.state))
    bench.task.take(())
    (third,) = bench.programs.questions[2:]
    assert values_of(third) == [34], "the log has not told of the answers yet"
    assert third.after is None
    assert json.loads(third.state or b"") == {"1": 2, "2": 2}, "as the second left it"
    bench.programs.answer(third)
    bench.work()
    bench.work()
    assert bench.verdicts() == {"collected": 5, "emitted": 5}
    assert len(bench.programs.questions) == 3


@pytest.mark.parametrize(
    ("values", "batch", "questions"),
    [(range(3 * MAX_AHEAD), 2, MAX_AHEAD), (range(20), 1, MAX_AHEAD), (range(5), 2, 2)],
)
def test_so_many_are_open_of_a_stream(values: range, batch: int, questions: int) -> None:
    bench = Bench(a_manifest(batch=batch))
    bench.put(*(12 * each + 10 for each in values))
    assert len(bench.programs.questions) == questions


def test_so_many_bytes_are_open_of_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "MAX_AHEAD_BYTES", 200)
    bench = Bench(a_manifest(batch=1))
    bench.put(*range(10, 20))
    size = len(bench.programs.questions[0].events[0])
    assert len(bench.programs.questions) == -(-200 // size)


def test_what_was_asked_behind_an_answer_that_is_none_is_asked_again() -> None:
    bench = Bench(a_manifest(batch=2))
    bench.put(10, 6, 22, 23)  # the second one raises
    first, second = bench.programs.questions
    reply = bench.programs.answer(first)
    bench.programs.answer(second._replace(state=reply.state))
    for _ in range(20):
        bench.work()
        for each in bench.programs.questions[2:][-1:]:
            bench.programs.answer(each)
    asked = [values_of(each) for each in bench.programs.questions]
    assert asked == [[10, 6], [22, 23], [10], [6, 22], [6], [22], [23]]
    assert bench.verdicts() == {"collected": 4, "emitted": 3, "error": 1}


def test_what_a_program_makes_has_the_context_of_its_update() -> None:
    """And the question and the answer are told of it; without one nothing of it stands there."""
    one = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    bench = Bench(a_manifest())
    for value, trace in ((10, one), (11, "")):
        body = {"channels": {"v": {"current-value": value}}, "lastUpdate": value}
        update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
        bench.platform.log.append(0, UpdateRecord("so0", "d0", value, update, trace=trace))
    bench.work()
    (question,) = bench.programs.questions
    bench.programs.answer(question)
    bench.work()
    bench.work()
    bench.put(22)
    bench.programs.answer(bench.programs.questions[1])
    bench.work()

    found = {
        each.timestamp: each.trace for each in bench.platform.state.emitted if each.stream == "p0"
    }
    assert found == {10: one, 11: ""}
    records = [read_record(value) for value in bench.platform.state.log[0]]
    answers = [each for each in records if isinstance(each, AnswerRecord)]
    assert [each.traces for each in answers] == [(one, ""), ()]
    assert b"traces" not in bench.platform.state.log[0][-1]
