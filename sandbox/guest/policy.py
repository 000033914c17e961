"""The allow-list's side in Python: acorn and policy.js in an engine that runs nothing else.

One process parses the texts of all tenants. It can: a text is data to it, at most 4 KiB,
and no tenant's code runs there.
"""

from __future__ import annotations

import time
from pathlib import Path

import orjson

from sandbox import protocol
from sandbox.encoding import program_of
from sandbox.guest.engines import Engine, OutOfMemory, TimedOut
from sandbox.program import Program
from sandbox.third_party import ACORN

RULES = Path(__file__).with_name("realm") / "policy.js"


def rules(javascript: Path) -> bytes:
    """Return a script whose value is policy.js's check(), with acorn from this folder."""
    acorn = (
        b"(function(){const exports={},module=exports;"
        + (javascript / ACORN).read_bytes()
        + b"\nreturn exports})()"
    )
    return RULES.read_bytes().rstrip() + b"(" + acorn + b")"


class Checker:
    """A checker is an engine that knows acorn and the rules."""

    def __init__(self, engine: Engine, script: bytes) -> None:
        """`script` comes from rules()."""
        self._engine = engine
        self._check = self._engine.evaluate(script, 10)

    def answer(self, kind: int, body: bytes) -> bytes:
        """Return the frame to send back: PROBLEMS, or why there are none."""
        if kind != protocol.CHECK:
            raise protocol.ProtocolError(f"unknown kind {kind}")
        try:
            budget, programs = protocol.budget_of(body)
            deadline = time.monotonic() + budget
            found = [self.problems(program_of(raw), deadline) for raw in orjson.loads(programs)]
        except TimedOut:
            return protocol.frame(protocol.TIMEOUT, b"")
        except OutOfMemory:
            return protocol.frame(protocol.OOM, b"")
        return protocol.frame(protocol.PROBLEMS, orjson.dumps(found))

    def problems(self, program: Program, deadline: float) -> list[tuple[str, str]]:
        """Return kind ("syntax" or "policy") and text of the problems, at most one a snippet."""
        left = deadline - time.monotonic()
        answer = self._engine.call_for_text(self._check, _question(program), left)
        return [
            (kind, f"{where}: line {line}, column {column}: {reason}")
            for kind, where, line, column, reason in orjson.loads(answer)
        ]


def _question(program: Program) -> bytes:
    function = program.dialect == "function"
    snippets = [(each.what, each.code, program.is_function(each)) for each in program.channels]
    for where, code in (
        ("pre-filter", program.pre_filter),
        ("post-filter", program.post_filter),
    ):
        if code is not None and code.strip():
            snippets.append((where, code, False))
    inputs = list(program.arguments) if function else []
    if function and not program.is_condition:
        inputs += ["$input", "$result"]
    inputs += [each.name for each in program.bindings]
    return orjson.dumps({"dialect": program.dialect, "inputs": inputs, "snippets": snippets})
