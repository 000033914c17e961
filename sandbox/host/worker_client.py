"""The pool's hold on one worker: send a frame, wait no longer than its budget, or kill."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from sandbox import protocol
from sandbox.encoding import encode_frame
from sandbox.host.allowance import UNLIMITED, Allowance
from sandbox.host.answers import MalformedAnswer, clipped, decode_layers, decode_problems
from sandbox.host.grown import Part, decode_grown
from sandbox.host.knowledge import Definition, Knowledge, listed
from sandbox.host.usage import ProcessorSeconds
from sandbox.host.zygote_client import InfraError, ZygoteClient
from sandbox.trees import Call

GRACE_SECONDS = 0.4  # beyond the budget: V8 has built-ins that never look up
READY_SECONDS = 10.0
CHECK_MS = 1000
MIN_CHECK_MS = 100
MAX_MESSAGE_BYTES = 1000  # bytes of what a worker says where it has no answer
CHECKED_BYTES_PER_MS = 25
GIVEN_PART = 0.95
"""Of its budget a frame had of the processor, if not all, before its programs are to blame: the
rest is sending, and the clocks differ."""

AT_FIRST = 1.25
"""Of its budget a frame may take by the clock on the wall: none has the processor all the time."""
IF_PATIENT = 20
"""The same of one that has only the time that nobody else wants: all that its caller allows."""

DEFINE_MS = 5  # a program, beside the budget of the frame that brings it
WIRE_MS_PER_NODE = 0.1
"""Beside the budget of the frame that brings it."""

ANSWERS = {
    protocol.DEFINE: protocol.DEFINED,
    protocol.WIRE: protocol.WIRED,
    protocol.GROW: protocol.GROWN,
    protocol.CHECK: protocol.PROBLEMS,
}


@dataclass(frozen=True, slots=True)
class Budget:
    """A frame may take so long, and at least the minimum even where an allowance runs out.

    By the clock on the wall it may take some `times` as long: more, on a machine that has not
    given it the processor before.
    """

    milliseconds: int
    minimum: int
    times: float = AT_FIRST

    def plus(self, more: int) -> Budget:
        """Return a budget that is longer by so many milliseconds."""
        return replace(self, milliseconds=self.milliseconds + more, minimum=self.minimum + more)

    @property
    def wall_milliseconds(self) -> int:
        """What it may take by the clock on the wall."""
        return int(self.milliseconds * self.times)

    def was_given(self, seconds: float) -> bool:
        """Tell whether a frame that had so much of the processor had what it may take."""
        return seconds >= GIVEN_PART * self.milliseconds / 1000


@dataclass(frozen=True, slots=True)
class Failure:
    """A frame had no answer, and its worker is dead; a `starved` one had too little processor."""

    kind: str
    message: str
    starved: bool = False
    programs: tuple[Definition, ...] = ()
    """Those that it was to make ready, where it failed at that."""


class WorkerClient:
    """A client is our hold on one living worker process of one tenant."""

    def __init__(
        self, zygote: ZygoteClient, checks: bool = False, is_patient: bool = False
    ) -> None:
        """Start a process, which is ready() some time later. Raises InfraError.

        It runs what it is told, or only `checks` texts; one that is patient has only the time
        that nobody else wants.
        """
        self._times = IF_PATIENT if is_patient else AT_FIRST
        self._connection, self.pid = zygote.spawn(checks, is_patient)
        try:
            self._process = os.pidfd_open(self.pid)  # a pid could be somebody else's by then
        except ProcessLookupError:
            self._process = -1  # it has ended at once: what it has said tells why
        except OSError as error:
            self._connection.close()
            raise InfraError(f"a worker cannot be watched: {error}") from error
        self._silence = select.poll()
        self._silence.register(self._connection, select.POLLIN)
        self._reader = protocol.Reader(self._connection)
        self._knowledge = Knowledge()
        self._clock = (~self.pid << 3) | 2  # the process's CPU clock, see clock_getcpuclockid(3)
        self._accounted = self._last_cpu = self._start_cpu = self._preparing_cpu = 0.0
        self._start_seconds = READY_SECONDS * (IF_PATIENT if is_patient else 1)
        self.last_used = time.monotonic()

    def ready(self, allowance: Allowance = UNLIMITED) -> Self:
        """Wait until the worker serves, and return this client. Raises InfraError.

        Raises TookTooLong where the allowance ends before: then it still starts, and may be waited
        for again.
        """
        began = time.monotonic()
        left = allowance.left()
        is_cut = left is not None and left < self._start_seconds
        answer = self._ask(b"", left if is_cut and left is not None else self._start_seconds)
        self._start_seconds = max(0.0, self._start_seconds - (time.monotonic() - began))
        if isinstance(answer, Failure):
            if is_cut and answer.kind == "timeout":
                allowance.note_preparation()
                raise allowance.spent()
            self.kill()
            raise InfraError(f"a worker did not start: {answer.kind} {answer.message}")
        kind, body = answer
        if kind != protocol.READY:
            self.kill()
            raise InfraError(f"a worker will not serve: {_message(body)}")
        try:
            self.layers = decode_layers(body)
        except MalformedAnswer as error:
            self.kill()
            raise InfraError(f"a worker will not serve: {error}") from error
        self.last_used = time.monotonic()
        self._start_cpu = self._cpu()
        return self

    def full(self) -> bool:
        """Tell whether its programs take so much memory that a script might lack it."""
        return self._knowledge.is_full()

    @property
    def ended(self) -> bool:
        """Whether we have ended the worker, or let go of it."""
        return self._process < 0

    def alive(self) -> bool:
        """Tell whether the worker still holds its end; it says nothing without being asked."""
        return not self._silence.poll(0)

    def grow(
        self,
        calls: Sequence[Call],
        milliseconds: int,
        budget: Budget,
        allowance: Allowance = UNLIMITED,
    ) -> list[Part] | Failure:
        """Return what came of each call, or why nothing did. Raises TookTooLong.

        No tree is begun after so many milliseconds, except the first one.
        """
        failure = self._wire(calls, budget, allowance) or self._define(calls, budget, allowance)
        if failure:
            return failure
        body = encode_frame(calls, self._knowledge.slots, milliseconds)
        answer = self._exchange(protocol.GROW, body, budget, allowance)
        if isinstance(answer, Failure):
            return answer
        try:
            return decode_grown(answer, calls, self._knowledge.known(calls))
        except MalformedAnswer as error:
            return self._malformed(str(error))

    def check(
        self, programs: Sequence[bytes], allowance: Allowance = UNLIMITED
    ) -> list[list[tuple[str, str]]] | Failure:
        """Return kind and text of the problems of each program (JSON). Raises TookTooLong."""
        body = listed(programs)
        milliseconds = CHECK_MS + len(body) // CHECKED_BYTES_PER_MS
        budget = Budget(milliseconds, MIN_CHECK_MS, self._times)
        answer = self._exchange(protocol.CHECK, body, budget, allowance)
        if isinstance(answer, Failure):
            return answer
        try:
            return decode_problems(answer, len(programs))
        except MalformedAnswer as error:
            return self._malformed(str(error))

    def take_used(self) -> ProcessorSeconds:
        """Return what was used since this was last asked; `overlong` is for others to tell."""
        total = self._cpu()
        taken, started, prepared = total - self._accounted, self._start_cpu, self._preparing_cpu
        self._accounted, self._start_cpu, self._preparing_cpu = total, 0.0, 0.0
        return ProcessorSeconds(taken - started - prepared, started, prepared)

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

    def _wire(self, calls: Sequence[Call], budget: Budget, allowance: Allowance) -> Failure | None:
        """Make the wirings known that the worker does not know yet."""
        for wiring in self._knowledge.new_wirings(calls):
            longer = budget.plus(int(WIRE_MS_PER_NODE * len(wiring.nodes)))
            for portion in self._knowledge.portions_of(wiring):
                failure = self._tell(protocol.WIRE, portion, longer, allowance)
                if failure:
                    return failure
                self._knowledge.note_portion(wiring)
                allowance.note_preparation()
            self._knowledge.note_wiring(wiring)
        return None

    def _define(
        self, calls: Sequence[Call], budget: Budget, allowance: Allowance
    ) -> Failure | None:
        """Make the programs known that may run and that the worker does not know yet."""
        for portion in self._knowledge.new_programs(calls):
            failure = self._make_ready(portion, budget, allowance)
            if failure:
                return replace(failure, programs=tuple(portion))
        return None

    def make_ready(
        self, program: Definition, budget: Budget, allowance: Allowance
    ) -> Failure | None:
        """Make one program known, whoever runs it. Raises TookTooLong."""
        return self._make_ready([program], budget, allowance)

    def _make_ready(
        self, portion: Sequence[Definition], budget: Budget, allowance: Allowance
    ) -> Failure | None:
        question = self._knowledge.question_of(portion)
        longer = budget.plus(DEFINE_MS * len(portion))
        failure = self._tell(protocol.DEFINE, question, longer, allowance)
        if failure is None:
            self._knowledge.note_programs(portion)
            allowance.note_preparation()
        return failure

    def _tell(
        self, kind: int, question: bytes, budget: Budget, allowance: Allowance
    ) -> Failure | None:
        """Send what has no answer but that it was understood: of a program, before it runs."""
        before = self._cpu()
        try:
            done = self._exchange(kind, question, budget, allowance)
        finally:
            self._preparing_cpu += self._cpu() - before
        if isinstance(done, Failure):
            return done
        return self._malformed("a body where there is none") if done else None

    def _exchange(
        self, kind: int, question: bytes, budget: Budget, allowance: Allowance
    ) -> bytes | Failure:
        """Send a question and return the answer's body. After a Failure the worker is dead.

        Raises TookTooLong where the allowance is used up before the frame is sent; or
        where it left the frame less than its budget, and the frame took all of that.
        """
        allowance.check()
        granted = allowance.granted(budget.wall_milliseconds, budget.minimum)
        before, began = self._cpu(), time.monotonic()
        try:
            message = protocol.frame(kind, protocol.budgeted(granted, question))
        except protocol.ProtocolError as error:
            self.kill()  # it now lacks a program that we believe it knows
            return Failure("error", str(error))
        answer = self._ask(message, granted / 1000 + GRACE_SECONDS)
        self.last_used = time.monotonic()
        if isinstance(answer, Failure):
            if answer.kind == "crash":
                self._note_end(time.monotonic() - began)
            burned = self._cpu() - before
            self.kill()
            starved = answer.kind == "timeout" and not budget.was_given(burned)
            if starved and granted < budget.wall_milliseconds:
                raise allowance.spent(in_vain=True)
            return Failure(answer.kind, answer.message, starved)
        if answer[0] != ANSWERS[kind]:
            return self._malformed(f"frame of kind {answer[0]}")
        if self._reader.surplus():
            return self._malformed("more than was asked for")
        return answer[1]

    def _malformed(self, why: str) -> Failure:
        """End a worker whose answer does not fit: it is no longer what we have started."""
        self.kill()
        return Failure("crash", f"the answer made no sense: {why}")

    def _ask(self, message: bytes, seconds: float) -> tuple[int, bytes] | Failure:
        try:
            self._connection.settimeout(seconds)
            ends = time.monotonic() + seconds
            if message:
                self._connection.sendall(message)
            kind, body = self._reader.read(ends - time.monotonic())
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
            return Failure("error", "the frame cannot be run: " + _message(body))
        return kind, body

    def _note_end(self, seconds: float) -> None:
        """Note that the process has ended by itself so long after it was asked.

        What it used is gone with it: it had the processor all the time, for all we know.
        """
        self._last_cpu += seconds

    def _cpu(self) -> float:
        if self._process >= 0:
            with contextlib.suppress(OSError):  # it has ended; what it used since is lost
                self._last_cpu = time.clock_gettime(self._clock)
        return self._last_cpu


def _message(body: bytes) -> str:
    return clipped(body[:MAX_MESSAGE_BYTES].decode("utf-8", "replace"))
