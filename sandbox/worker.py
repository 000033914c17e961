"""The process in which one tenant's code runs: one isolate, one frame at a time.

It answers, or it is killed. After a time-out or memory fault it only says so and waits
for the end, because the state of the context is unknown.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from dataclasses import dataclass

import orjson

from sandbox import protocol
from sandbox.compile import Compiler
from sandbox.encoding import program_of
from sandbox.engines import (
    Engine,
    FlagsRefused,
    Library,
    OutOfMemory,
    ScriptFailed,
    TimedOut,
)
from sandbox.layers import Outside, enclose, unprotected
from sandbox.limits import LimitRefused
from sandbox.policy import Checker
from sandbox.scripts import realm

BUDGET = struct.Struct("!I")
SLOT = struct.Struct("!H")
PROBE_SECONDS = 0.1
CHECK_SECONDS = 1.0


class Worker:
    """One engine with the runner in it, its realm locked, and the programs it has been given."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        parts = self._engine.evaluate(realm(), 5)
        self._define, source_of, self._run = (self._engine.item(parts, at) for at in range(3))
        self._compiler = Compiler(self._engine, source_of)
        self._probe = self._engine.evaluate(b"(function(){return ''})", 5)
        self._waiting: list[bytes] = []
        self._lingers = False

    def answer(self, kind: int, body: bytes) -> bytes | None:
        """The frame to send back, if this one has an answer."""
        if kind == protocol.DEFINE:
            self._waiting.append(body)  # compiled within the budget of the run that follows
            return None
        try:
            if kind == protocol.RUN:
                return protocol.frame(protocol.VALUES, self.run(body))
            if kind == protocol.CHECK:
                return protocol.frame(protocol.PROBLEMS, orjson.dumps(self.check(body)))
        except TimedOut:
            return protocol.frame(protocol.TIMEOUT, b"")
        except OutOfMemory:
            return protocol.frame(protocol.OOM, b"")
        except (ScriptFailed, protocol.ProtocolError) as error:
            return protocol.frame(protocol.BROKEN, str(error)[:300].encode())
        raise protocol.ProtocolError(f"unknown kind {kind}")

    def run(self, body: bytes) -> bytes:
        """Run a frame of calls: one entry into V8, and a probe if a script may linger."""
        budget = BUDGET.unpack_from(body)[0] / 1000
        deadline = time.monotonic() + budget
        for definition in self._waiting:
            self._compile(definition, deadline)
        self._waiting.clear()
        left = deadline - time.monotonic()
        answer = self._engine.call_for_text(self._run, body[BUDGET.size :], left)
        if self._lingers:
            self._engine.call_for_text(self._probe, b"", PROBE_SECONDS)
        return answer

    def check(self, body: bytes) -> list[tuple[str, str]]:
        """What the engine itself has against a program: kind and text of each problem."""
        deadline = time.monotonic() + CHECK_SECONDS
        found = self._compiler.compile(program_of(body), 0, deadline).problems
        return [("syntax", each) for each in found]

    def _compile(self, definition: bytes, deadline: float) -> None:
        slot = SLOT.unpack_from(definition)[0]
        text = definition[SLOT.size :]
        # The only ways left to run after the call has returned (see runner.js); keywords
        # cannot be spelt otherwise.
        self._lingers = self._lingers or b"async" in text or b"import" in text
        compiled = self._compiler.compile(program_of(text), slot, deadline)
        left = deadline - time.monotonic()
        code = self._engine.evaluate(compiled.source, left)
        done = self._engine.call(self._define, compiled.description, left, code)
        self._engine.release(done)
        self._engine.release(code)


@dataclass(frozen=True, slots=True)
class Service:
    """What a worker is for, as its pool asked."""

    idle_seconds: float
    unprotected: bool  # serve even without the required layers
    checks: bool  # parse programs and never run one


def serve(
    connection: socket.socket, library: Library, parent: int, service: Service, outside: Outside
) -> None:
    """Answer frames until the pool is gone, or has been silent for `idle_seconds`."""
    connection.settimeout(service.idle_seconds)
    try:
        make: type[Checker] | type[Worker] = Checker if service.checks else Worker
        worker, layers = enclose(parent, outside, lambda: make(library.proven()))
        lack = "" if service.unprotected else unprotected(layers)
        if lack:
            raise LimitRefused(f"not protected: {lack}")
    except (FlagsRefused, LimitRefused, OSError) as error:
        reason = f"{type(error).__name__}: {error}".encode()
        connection.sendall(protocol.frame(protocol.REFUSED, reason))
        return
    connection.sendall(protocol.frame(protocol.READY, orjson.dumps(layers)))
    reader = protocol.Reader(connection)
    while True:
        try:
            answer = worker.answer(*reader.read())
            if answer is not None:
                connection.sendall(answer)
        except (protocol.Closed, TimeoutError):
            return


def main(
    connection: socket.socket, library: Library, parent: int, service: Service, outside: Outside
) -> None:
    """serve(), and end without any clean-up: V8's may hang."""
    try:
        serve(connection, library, parent, service, outside)
    finally:
        os._exit(0)
