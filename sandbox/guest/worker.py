"""The process in which one tenant's code runs: one isolate, one frame at a time.

It answers, or it is killed. After a time-out or memory fault it only says so and waits
for the end, because the state of the context is unknown.
"""

from __future__ import annotations

import os
import select
import socket
import time
from dataclasses import dataclass

import orjson

from sandbox import protocol
from sandbox.encoding import program_of
from sandbox.guest.compile import Compiler
from sandbox.guest.engines import (
    PROGRAM,
    Engine,
    FlagsRefused,
    MakeEngine,
    NotParsed,
    OutOfMemory,
    ScriptFailed,
    TimedOut,
)
from sandbox.guest.layers import Outside, enclose, unprotected
from sandbox.guest.limits import LimitRefused
from sandbox.guest.policy import Checker
from sandbox.yielding import lead_a_session, take_what_is_left

PROBE_SECONDS = 0.1


class Worker:
    """A worker is an engine with the runner in its locked realm, and the programs it was given."""

    def __init__(self, engine: Engine, script: bytes) -> None:
        """`script` comes from realm()."""
        self._engine = engine
        parts = self._engine.evaluate(script, 5)
        self._define, source_of, self._wire, self._grow = (
            self._engine.item(parts, at) for at in range(4)
        )
        self._compiler = Compiler(self._engine, source_of)
        self._probe = self._engine.evaluate(b"(function(){return ''})", 5)
        self._lingers = False

    def answer(self, kind: int, body: bytes) -> bytes:
        """Return the frame to send back."""
        budget, question = protocol.budget_of(body)
        deadline = time.monotonic() + budget
        try:
            if kind == protocol.GROW:
                return protocol.frame(protocol.GROWN, self.grow(question, budget))
            if kind == protocol.DEFINE:
                self.define(question, deadline)
                return protocol.frame(protocol.DEFINED, b"")
            if kind == protocol.WIRE:
                self._engine.call_for_text(self._wire, question, budget)
                return protocol.frame(protocol.WIRED, b"")
            if kind == protocol.CHECK:
                return protocol.frame(protocol.PROBLEMS, self.check(question, deadline))
        except TimedOut:
            return protocol.frame(protocol.TIMEOUT, b"")
        except OutOfMemory:
            return protocol.frame(protocol.OOM, b"")
        except (ScriptFailed, NotParsed, protocol.ProtocolError) as error:
            return protocol.frame(protocol.BROKEN, str(error)[:300].encode())
        raise protocol.ProtocolError(f"unknown kind {kind}")

    def grow(self, calls: bytes, seconds: float) -> bytes:
        """Grow a frame of trees: one entry into V8, and a probe if a script may linger."""
        answer = self._engine.call_for_text(self._grow, calls, seconds)
        if self._lingers:
            self._engine.call_for_text(self._probe, b"", PROBE_SECONDS)
        return answer

    def define(self, definitions: bytes, deadline: float) -> None:
        """Compile programs, each for its slot."""
        # The only ways left to run after the call has returned (see runner.js); keywords
        # cannot be spelt otherwise.
        self._lingers = self._lingers or b"async" in definitions or b"import" in definitions
        for slot, raw in orjson.loads(definitions):
            compiled = self._compiler.compile(program_of(raw), slot, deadline)
            left = deadline - time.monotonic()
            code = self._engine.evaluate(compiled.source, left, PROGRAM)
            done = self._engine.call(self._define, compiled.description, left, code)
            self._engine.release(done)
            self._engine.release(code)

    def check(self, programs: bytes, deadline: float) -> bytes:
        """Return kind and text of every problem that the engine itself has with each program."""
        found = [
            self._compiler.compile(program_of(raw), 0, deadline).problems
            for raw in orjson.loads(programs)
        ]
        return orjson.dumps([[("syntax", each) for each in problems] for problems in found])


@dataclass(frozen=True, slots=True)
class Service:
    """What a worker is for, as its pool asked."""

    idle_seconds: float
    unprotected: bool  # serve even without the required layers
    checks: bool  # parse programs and never run one
    is_patient: bool  # have only the time that nobody else wants


@dataclass(frozen=True, slots=True)
class Shared:
    """What the zygote has read for all its workers, before they are enclosed."""

    make_engine: MakeEngine
    realm: bytes
    rules: bytes
    outside: Outside
    nice: int
    """How much lower their priority is than that of other programs."""
    leads: bool
    """Whether each leads a session of its own, which yields by as much."""


def serve(connection: socket.socket, shared: Shared, parent: int, service: Service) -> None:
    """Answer frames until the pool is gone, or has been silent for `idle_seconds`.

    Until the first one it waits as long as the zygote lives: it may be a spare.
    """
    connection.settimeout(service.idle_seconds)
    begins = select.poll()
    begins.register(connection, select.POLLIN)

    def make() -> Checker | Worker:
        engine = shared.make_engine()
        return Checker(engine, shared.rules) if service.checks else Worker(engine, shared.realm)

    try:
        # While the machine's /proc is there.
        if service.is_patient:
            take_what_is_left()
        elif shared.leads:
            lead_a_session(shared.nice)
        worker, layers = enclose(parent, shared.outside, make)
        lack = "" if service.unprotected else unprotected(layers)
        if lack:
            raise LimitRefused(f"not protected: {lack}")
    except (FlagsRefused, LimitRefused, OSError) as error:
        reason = f"{type(error).__name__}: {error}".encode()
        connection.sendall(protocol.frame(protocol.REFUSED, reason))
        return
    connection.sendall(protocol.frame(protocol.READY, orjson.dumps(layers)))
    reader = protocol.Reader(connection)
    begins.poll()
    while True:
        try:
            connection.sendall(worker.answer(*reader.read()))
        except (protocol.Closed, TimeoutError):
            return


def main(connection: socket.socket, shared: Shared, parent: int, service: Service) -> None:
    """Serve, and end without any clean-up: V8's may hang."""
    try:
        serve(connection, shared, parent, service)
    finally:
        os._exit(0)
