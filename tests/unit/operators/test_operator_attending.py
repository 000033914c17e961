"""What the node's thread does about a program that is not as it should be: no process is begun."""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from operators.attending import SETTLE_SECONDS, Attendant, Bounds
from operators.errors import Misbehaved
from operators.instance import Instance, Place
from operators.line import MOST_ANSWERED_BYTES, MOST_ATTEMPTS, Asked, Line, bytes_of
from operators.manifest import Described
from operators.wire import HEAD, MAX_ERROR, Spelling, failed, replies
from servioticy.ports.programs import Manifest, Program, Question, Reply

HUGE = b'{"n":18446744073709551616}'
UNTIL = 60.0


class Process:
    """Stands for a process that is ready."""

    def __init__(self) -> None:
        self.socket, self.theirs = socket.socketpair()
        self.status, self.written = os.pipe()
        self.is_ready, self.has_unsent, self.pid, self.printed = True, False, 1, b""
        self.sent: list[bytes] = []
        self.used = 0.0
        self.used_at_last = 0.0
        self.has_ended = False
        self.lost = ""

    def send(self, frame: bytes) -> None:
        self.sent.append(frame)

    def flush(self) -> None:
        pass

    def read_output(self) -> bool:
        return True

    def frames(self) -> Iterator[bytes]:
        raise Misbehaved("it has ended")

    def take_used(self) -> float:
        used, self.used = self.used, 0.0
        return used

    def end(self) -> None:
        self.socket.close()
        self.theirs.close()
        os.close(self.status)
        os.close(self.written)
        self.used, self.has_ended = self.used_at_last, True

    def is_gone(self) -> bool:
        return self.has_ended


class Stage:
    """An attendant, its lines, and what came of them."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.spent: list[tuple[int, float]] = []
        self.now = 0.0
        self.attendant = Attendant(
            SimpleNamespace(),
            Place(Path("none"), strangers=False),
            Bounds(places=0),
            lambda: self.now,
            lambda _line, _asked, reply: self.replies.append(reply),
            lambda: None,
            lambda: True,
            lambda line, seconds: self.spent.append((line.program.tenant, seconds)),
        )
        self.lines: list[Line] = []

    def line(self, *states: bytes | None, message: str = "json") -> tuple[Line, Any]:
        """Return a program whose process is ready, asked a question for each state."""
        program, process = Program(len(self.lines) + 1, "tried", 1), Process()
        line = Line(program, used=0.0)
        manifest = Manifest("python", True, 100, 0.0, 10.0, 2**26, 4)
        line.described = Described("tried", manifest, ("python3",), message)
        line.spelling, line.instance = Spelling(message), process  # type: ignore[assignment]
        for number, state in enumerate(states):
            asked = Question(b"%d-%d" % (program.tenant, number), program, "so/s", state, [b"{}"])
            line.waiting.append(Asked(asked, 0.0, 1))
        for each, is_socket in ((process.socket, True), (process.status, False)):
            data = (line, process, is_socket)
            self.attendant.selector.register(each, selectors.EVENT_READ, data)
        self.lines.append(line)
        return line, process

    def attend(self) -> None:
        """Attend to all."""
        self.attendant.attend(self.lines)


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Return a stage that is cleared afterwards."""
    made = Stage()
    yield made
    made.attendant.close(made.lines)


def test_what_cannot_be_spelt_fails_alone(stage: Stage) -> None:
    """A state that a version with JSON has kept, and MessagePack cannot say."""
    _, bad = stage.line(None, HUGE, None, message="msgpack")
    _, behind = stage.line(None)
    stage.attend()

    assert [each.id for each in stage.replies] == [b"1-1"]
    assert "cannot be asked" in stage.replies[0].error
    assert stage.replies[0].state == HUGE
    (frame,) = bad.sent
    assert len(msgspec.msgpack.decode(frame[HEAD.size :])["questions"]) == 2
    assert len(behind.sent) == 1


def test_a_frame_of_nothing_but_what_cannot_be_spelt_is_not_sent(stage: Stage) -> None:
    """Nor is an answer to it waited for."""
    line, process = stage.line(HUGE, message="msgpack")
    stage.attend()

    assert (len(stage.replies), process.sent, line.until) == (1, [], None)


def test_a_fault_of_ours_at_one_line_does_not_keep_the_others(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process ends, and its question is blamed when that has happened so often."""
    first, _ = stage.line(None)
    _, behind = stage.line(None)
    take = Line.take

    def broken(line: Line, now: float) -> list[Asked]:
        if line is first:
            raise LookupError
        return take(line, now)

    monkeypatch.setattr(Line, "take", broken)
    stage.attend()

    assert len(behind.sent) == 1
    assert first.instance is None
    assert "the platform could not" in first.problem


def test_a_fault_of_ours_in_hearing_ends_the_process(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the thread would meet it again and again."""
    line, process = stage.line(None)

    def broken(_process: Process) -> Iterator[bytes]:
        raise LookupError

    monkeypatch.setattr(Process, "frames", broken)
    stage.attendant.hear(line, process, True)

    assert line.instance is None


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_a_state_has_integers_of_64_bits(number: int) -> None:
    """What one spelling keeps the other can say."""
    asked = Question(b"q", Program(1, "tried", 1), "so/s", b"1", [b"{}"])

    def kept(state: int) -> Reply:
        body = b'{"replies":[{"id":"1","state":{"n":[%d]}}]}' % state
        ((_, reply),) = replies(Spelling("json").said(body), {"1": asked})
        return reply

    assert kept(number).error.startswith("state: ")
    assert kept(number).state == b"1"
    nearest = number - 1 if number > 0 else number + 1
    assert kept(nearest).state == b'{"n":[%d]}' % nearest


def test_an_error_is_cut_before_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have some megabytes; five hundred characters of it are told."""

    class Text(str):
        __slots__ = ()

        def __iter__(self) -> Iterator[str]:
            raise AssertionError("all of it is gone through")

    asked = Question(b"q", Program(1, "tried", 1), "so/s", None, [b"{}"])

    assert failed(asked, Text("a\n" * MAX_ERROR)).error == "a " * (MAX_ERROR // 2)


def test_frames_are_counted_as_they_are_heard(stage: Stage) -> None:
    """What becomes of them may be little: errors, states that are refused."""
    states = [None] * 4
    line, process = stage.line(*states)
    stage.attend()
    size = MOST_ANSWERED_BYTES // 4

    def body(number: int, length: int) -> bytes:
        head = b'{"replies":[{"id":"%d","error":"' % number
        return head + b"x" * (length - len(head) - 4) + b'"}]}'

    bodies = [body(1, size), body(2, size), body(3, size), body(4, size + 1)]
    process.frames = lambda: iter(bodies)
    stage.attendant.hear(line, process, True)

    assert len(stage.replies) == 3
    assert "more than" in line.problem
    assert bytes_of(stage.replies[0]) == MAX_ERROR


def test_as_many_bytes_as_may_be_are_heard(stage: Stage) -> None:
    """At the border."""
    line, process = stage.line(None)
    stage.attend()
    line.answered_bytes = MOST_ANSWERED_BYTES - 24
    process.frames = lambda: iter([b'{"replies":[{"id":"1"}]}'])
    stage.attendant.hear(line, process, True)

    assert [each.error for each in stage.replies] == [""]


def test_who_never_answers_pays_with_the_failed_reply(stage: Stage) -> None:
    """What was used before its process was ended, and what is known only when it is gone."""
    line, process = stage.line(None, None)
    stage.attend()
    for each in line.asked.values():
        each.attempts = MOST_ATTEMPTS
    line.asked.popitem()
    process.used, process.used_at_last = 2.0, 0.5
    stage.attendant.hear(line, process, True)
    stage.attend()

    assert [each.processor_seconds for each in stage.replies] == [2.0]
    assert line.pay() == 0.5
    assert line.pay() == 0.0


def test_what_is_used_while_nobody_asks_is_paid_without_a_reply(stage: Stage) -> None:
    """As of a warm-up, or of who goes on behind an answer; not while an answer comes."""
    _, idle = stage.line()
    busy, answering = stage.line(None)
    stage.attend()
    idle.used = answering.used = 2.0
    stage.now = SETTLE_SECONDS - 0.1
    stage.attend()
    assert stage.spent == []
    stage.now = SETTLE_SECONDS
    stage.attend()

    assert stage.spent == [(1, 2.0)]
    assert busy.asked
    assert answering.used == 2.0


def test_what_is_forgotten_pays_when_it_is_gone(stage: Stage) -> None:
    """Nobody asks it any more, so no reply tells."""
    line, process = stage.line(None)
    stage.attend()
    process.used, process.used_at_last = 2.0, 0.5
    line.is_forgotten = True
    stage.attendant.forget(line)
    stage.lines.remove(line)
    stage.attend()

    assert stage.spent == [(1, 2.5)]


def test_who_cannot_be_reached_is_not_to_blame(stage: Stage) -> None:
    """What it was asked waits as if it had not been asked, in its order, however often."""
    line, process = stage.line(None)
    stage.attend()
    (asked,) = line.asked.values()
    asked.attempts = MOST_ATTEMPTS
    process.lost = "the store is gone"
    stage.attendant.hear(line, process, True)

    assert stage.replies == []
    assert [*line.waiting] == [asked]
    assert asked.attempts == MOST_ATTEMPTS
    assert (line.restarts, line.starts_failed) == (1, 0)
    assert "the store is gone" in line.problem
    assert process.has_ended


def test_an_ended_process_still_tells_what_it_has_used() -> None:
    """And what those have used for which it waited."""
    burn = "import time\nwhile time.process_time() < 0.2: pass"
    instance = Instance.__new__(Instance)
    instance._process = subprocess.Popen([sys.executable, "-I", "-S", "-c", burn])
    instance._clock, instance._used, instance._used_in_all = None, 0.0, 0.0
    until = time.monotonic() + UNTIL
    while not instance.is_gone():
        assert time.monotonic() < until
        time.sleep(0.01)

    assert instance.take_used() >= 0.15
    assert instance.take_used() == 0.0
