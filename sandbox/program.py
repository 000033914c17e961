"""What the sandbox is asked and what it answers: frozen nouns, and nothing that runs.

A Program is a composite stream's code. A Call is a fold of it over an ordered list of
steps. Every step has one outcome: a Value, a Fault, or None where nothing was computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sandbox.text import argument_names

__all__ = [
    "FAULT_KINDS",
    "INPUT",
    "RESULT",
    "Assignment",
    "Binding",
    "Call",
    "ChannelCode",
    "Computation",
    "Fault",
    "Outcome",
    "Path",
    "PathStep",
    "Program",
    "Step",
    "Value",
    "argument_names",
]

INPUT = -1
"""As a Binding's argument: the update that triggered."""

RESULT = -2
"""As a Binding's argument: the new update. Only a post filter may use it."""

FAULT_KINDS = frozenset(
    {
        "stale",  # the trigger is not newer than the stream's last output
        "filtered",  # a filter said no, or a function returned null
        "script-error",  # the script threw
        "error",  # the value cannot be bound to the channel's type
        "timeout",
        "oom",
        "crash",
        "policy",  # the allow-list does not know what the program is made of
        "suspended",  # the program has ended too many processes: see breaker.py
        "syntax",
    }
)


@dataclass(frozen=True, slots=True)
class ChannelCode:
    """A channel computed by JavaScript; `type` in any case and spacing, "array[number]"."""

    name: str
    code: str
    type: str
    unit: str | None = None


PathStep = str | int | tuple[Any, ...]
"""A key or an index; or a selector, which may find several places or none (RFC 9535):
("names", key, ...), ("items", index, ...), ("slice", start, end, step), ("children",),
("this",), ("root",), ("either", path, path), ("below", path) for what the path finds in a
value and in all that is in it, and ("where", test, ...) for the children that pass. A test is
("found", path), ("not", test), ("and", test, ...), ("or", test, ...), ("value", operator,
path, constant) or ("both", operator, path, path).
"""

Path = tuple[PathStep, ...]
"""All of its steps are keys and indexes, or all are selectors."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The JavaScript variable `name` is an argument followed along a path.

    Keys and indexes lead to one value or null, selectors to the list of all they find, or
    null where that is nothing.
    """

    name: str
    argument: int
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Program:
    """The code of one version of a composite stream.

    `id` names stream and version: equal ids mean equal programs. `arguments` are the
    inputs in order. For "function" they are the variables of the code; for "expression"
    the code sees only `bindings`. `self_argument` is the one that is the stream's own
    last output, threaded through the fold.
    """

    id: str
    dialect: Literal["function", "expression"]
    arguments: tuple[str, ...]
    channels: tuple[ChannelCode, ...]
    pre_filter: str | None = None
    post_filter: str | None = None
    bindings: tuple[Binding, ...] = ()
    self_argument: int | None = None


class Computation(NamedTuple):
    """A step in which the code computes.

    `trigger` is an index into the program's arguments, `timestamp` the trigger's own,
    `floor` the largest of trigger and other inputs. `inputs` holds, for each argument,
    an index into the call's updates, or -1 for no data yet.
    """

    trigger: int
    timestamp: int
    floor: int
    inputs: tuple[int, ...]


class Assignment(NamedTuple):
    """A step in which the stream's last output was put from outside, if not older."""

    update: int
    timestamp: int


Step = Computation | Assignment


@dataclass(frozen=True, slots=True)
class Call:
    """One program folded over ordered steps, starting from the stream's last output.

    `previous` and `updates` are JSON texts of Sensor Updates. The sandbox trusts that
    they are JSON, as it trusts nothing about the program.
    """

    program: Program
    previous: bytes | None
    previous_timestamp: int | None
    updates: tuple[bytes, ...]
    steps: tuple[Step, ...]


class Value(NamedTuple):
    """A new update: its timestamp and its compact JSON, on one line."""

    timestamp: int
    document: bytes


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault says why a step has no value; `kind` is one of FAULT_KINDS."""

    kind: str
    message: str


Outcome = Value | Fault | None
