"""The pool's hold on one worker: send a frame, wait no longer than its budget, or kill."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from sandbox import protocol
from sandbox.encoding import Garbage, decode_answer, decode_ticks, encode_calls, encode_program
from sandbox.nursery import InfraError, Nursery
from sandbox.program import Call, Outcome

GRACE_SECONDS = 0.4  # beyond the budget: V8 has built-ins that never look up
READY_SECONDS = 10.0
CHECK_MS = 1000
CHECKED_BYTES_PER_MS = 100
DEFINE_MS = 5  # a program, beside the budget of the frame that brings it
PORTION_PROGRAMS = 64
PORTION_BYTES = 65_536

MOST_MEMORY = 32 * 1024 * 1024
"""Of the heap, for programs. A tenant with more gets a new worker now and then."""

PROGRAM_BYTES = 500
PROGRAM_GROWTH = 4
"""A program's share of the heap, measured: this much, and four times its text."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A frame had no answer; the worker is dead. `starved` if it had hardly any processor."""

    kind: str
    message: str
    starved: bool = False


class Client:
    """One living worker process of one tenant."""

    def __init__(self, nursery: Nursery, checks: bool = False) -> None:
        self._connection, self.pid = nursery.spawn(checks)
        try:
            self._process = os.pidfd_open(self.pid)  # a pid could be somebody else's by then
        except OSError as error:
            self._connection.close()
            raise InfraError(f"a worker ended at once: {error}") from error
        self._silence = select.poll()
        self._silence.register(self._connection, select.POLLIN)
        self._reader = protocol.Reader(self._connection)
        self._slots: dict[str, int] = {}
        self._memory = 0  # what its programs take, estimated
        self._clock = (~self.pid << 3) | 2  # the process's CPU clock, see clock_getcpuclockid(3)
        self._accounted = self._last_cpu = 0.0
        self.last_used = time.monotonic()
        self.ticks: list[int] = []  # of each call of the last frame, if it had an answer
        self._ready()

    def full(self) -> bool:
        """Whether its programs take so much that a script might lack it."""
        return self._memory > MOST_MEMORY

    def alive(self) -> bool:
        """Whether the worker still holds its end; it says nothing without being asked."""
        return not self._silence.poll(0)

    def run(self, calls: Sequence[Call], budget_ms: float) -> list[list[Outcome]] | Failure:
        """Outcomes of every step, or why there are none."""
        budget = max(1, int(budget_ms))
        self.ticks = []
        for definitions in self._definitions(calls):
            more = DEFINE_MS * len(definitions)
            body = _listed(definitions)
            done = self._exchange(protocol.DEFINE, body, budget + more, protocol.DEFINED)
            if isinstance(done, Failure):
                return done
        body = encode_calls(calls, self._slots)
        answer = self._exchange(protocol.RUN, body, budget, protocol.VALUES)
        if isinstance(answer, Failure):
            return answer
        try:
            lines, _, ticks = answer.rpartition(b"\n")
            self.ticks = decode_ticks(ticks, calls)
            return decode_answer(lines, calls)
        except Garbage as error:
            self.kill()
            return Failure("crash", f"the answer made no sense: {error}")

    def check(self, programs: Sequence[bytes]) -> list[list[tuple[str, str]]] | Failure:
        """For each program as JSON, kind and text of its problems."""
        body = _listed(programs)
        budget = CHECK_MS + len(body) // CHECKED_BYTES_PER_MS
        answer = self._exchange(protocol.CHECK, body, budget, protocol.PROBLEMS)
        if isinstance(answer, Failure):
            return answer
        found = [[(str(k), str(text)) for k, text in each] for each in orjson.loads(answer)]
        if len(found) != len(programs):
            self.kill()
            return Failure("crash", f"{len(found)} answers")
        return found

    def take_cpu(self) -> float:
        """Processor seconds used since this was last asked."""
        total = self._cpu()
        taken = total - self._accounted
        self._accounted = total
        return taken

    def kill(self) -> None:
        """End the worker now."""
        self._last_cpu = self._cpu()
        if self._process >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)
            self.abandon()

    def abandon(self) -> None:
        """Let go of the worker without ending it."""
        self._connection.close()
        if self._process >= 0:
            os.close(self._process)
        self._process = -1

    def _ready(self) -> None:
        answer = self._ask(b"", READY_SECONDS)
        if isinstance(answer, Failure):
            self.kill()
            raise InfraError(f"a worker did not start: {answer.kind} {answer.message}")
        kind, body = answer
        if kind != protocol.READY:
            self.kill()
            raise InfraError(f"a worker will not serve: {body.decode('utf-8', 'replace')}")
        self.layers: dict[str, str] = orjson.loads(body)

    def _definitions(self, calls: Sequence[Call]) -> list[list[bytes]]:
        """The programs that the worker does not know, in portions of a few milliseconds."""
        new: dict[str, bytes] = {}
        for call in calls:
            name = call.program.id
            if name not in self._slots:
                slot = self._slots[name] = len(self._slots)
                text = encode_program(call.program)
                self._memory += PROGRAM_BYTES + PROGRAM_GROWTH * len(text)
                new[name] = b"[%d,%b]" % (slot, text)
        return portions(list(new.values())) if new else []

    def _exchange(self, kind: int, question: bytes, budget: int, wanted: int) -> bytes | Failure:
        """The answer's body. After a Failure the worker is dead."""
        before = self._cpu()
        try:
            message = protocol.frame(kind, protocol.budgeted(budget, question))
        except protocol.ProtocolError as error:
            self.kill()  # it now lacks a program that we believe it knows
            return Failure("error", str(error))
        answer = self._ask(message, budget / 1000 + GRACE_SECONDS)
        self.last_used = time.monotonic()
        if isinstance(answer, Failure):
            burned = self._cpu() - before
            self.kill()
            starved = answer.kind == "timeout" and burned < budget / 2000
            return Failure(answer.kind, answer.message, starved)
        if answer[0] != wanted:
            self.kill()
            return Failure("crash", f"the answer made no sense: frame of kind {answer[0]}")
        return answer[1]

    def _ask(self, message: bytes, seconds: float) -> tuple[int, bytes] | Failure:
        try:
            self._connection.settimeout(seconds)
            if message:
                self._connection.sendall(message)
            kind, body = self._reader.read()
        except TimeoutError:
            return Failure("timeout", f"no answer within {seconds:.1f} s")
        except protocol.ProtocolError as error:
            return Failure("crash", str(error))
        except (protocol.Closed, OSError):
            return Failure("crash", "the script's process ended")
        if kind == protocol.TIMEOUT:
            return Failure("timeout", f"longer than {seconds - GRACE_SECONDS:.1f} s")
        if kind == protocol.OOM:
            return Failure("oom", "out of memory")
        if kind == protocol.BROKEN:
            return Failure("error", "the frame cannot be run: " + body.decode("utf-8", "replace"))
        return kind, body

    def _cpu(self) -> float:
        if self._process >= 0:
            with contextlib.suppress(OSError):  # it has ended; what it used since is lost
                self._last_cpu = time.clock_gettime(self._clock)
        return self._last_cpu


def portions(texts: list[bytes]) -> list[list[bytes]]:
    """In order, so that no portion is more than a few milliseconds of compiling."""
    cut: list[list[bytes]] = []
    size = PORTION_BYTES
    for text in texts:
        if size + len(text) > PORTION_BYTES or len(cut[-1]) >= PORTION_PROGRAMS:
            cut.append([])
            size = 0
        cut[-1].append(text)
        size += len(text)
    return cut


def _listed(texts: Sequence[bytes]) -> bytes:
    return b"[" + b",".join(texts) + b"]"
