"""The pool's hold on one worker: send a frame, wait no longer than its budget, or kill."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from sandbox import protocol
from sandbox.encoding import Garbage, decode_answer, decode_ticks, encode_calls, encode_program
from sandbox.nursery import InfraError, Nursery
from sandbox.program import Call, Outcome, Program
from sandbox.worker import BUDGET, SLOT

MOST_PROGRAMS = 4096
GRACE_SECONDS = 0.4  # beyond the budget: V8 has built-ins that never look up
READY_SECONDS = 10.0
CHECK_SECONDS = 2.0


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
        self._slots: OrderedDict[str, int] = OrderedDict()
        self._clock = (~self.pid << 3) | 2  # the process's CPU clock, see clock_getcpuclockid(3)
        self._accounted = self._last_cpu = 0.0
        self.last_used = time.monotonic()
        self.ticks: list[int] = []  # of each call of the last frame, if it had an answer
        self._ready()

    def alive(self) -> bool:
        """Whether the worker still holds its end; it says nothing without being asked."""
        return not self._silence.poll(0)

    def run(self, calls: Sequence[Call], budget_ms: float) -> list[list[Outcome]] | Failure:
        """Outcomes of every step, or why there are none."""
        budget = max(1, int(budget_ms))
        before = self._cpu()
        self.ticks = []
        try:
            message = self._definitions(calls) + protocol.frame(
                protocol.RUN, BUDGET.pack(budget) + encode_calls(calls, self._slots)
            )
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
        kind, body = answer
        try:
            if kind != protocol.VALUES:
                raise Garbage(f"frame of kind {kind}")
            lines, _, ticks = body.rpartition(b"\n")
            self.ticks = decode_ticks(ticks, calls)
            return decode_answer(lines, calls)
        except Garbage as error:
            self.kill()
            return Failure("crash", f"the answer made no sense: {error}")

    def check(self, program: Program) -> list[tuple[str, str]] | Failure:
        """Kind and text of the program's problems; after a Failure the worker is dead."""
        self.last_used = time.monotonic()
        try:
            message = protocol.frame(protocol.CHECK, encode_program(program))
        except protocol.ProtocolError as error:
            return [("policy", str(error))]
        answer = self._ask(message, CHECK_SECONDS)
        if not isinstance(answer, Failure) and answer[0] != protocol.PROBLEMS:
            answer = Failure("crash", f"frame of kind {answer[0]}")
        if isinstance(answer, Failure):
            self.kill()
            return answer
        return [(str(kind), str(text)) for kind, text in orjson.loads(answer[1])]

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

    def _definitions(self, calls: Sequence[Call]) -> bytes:
        """Frames for the programs the worker does not know; the longest unused make room."""
        new: dict[str, Program] = {}
        for call in calls:
            if call.program.id in self._slots:
                self._slots.move_to_end(call.program.id)
            else:
                new[call.program.id] = call.program
        if not new:
            return b""
        frames = []
        for name, program in new.items():
            full = len(self._slots) >= MOST_PROGRAMS
            slot = self._slots.popitem(last=False)[1] if full else len(self._slots)
            self._slots[name] = slot
            body = SLOT.pack(slot) + encode_program(program)
            frames.append(protocol.frame(protocol.DEFINE, body))
        return b"".join(frames)

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
