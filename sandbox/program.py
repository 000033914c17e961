"""A composite stream's code, as the sandbox runs it: frozen nouns, and nothing that runs.

`trees` has the nouns of what it is run for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sandbox.text import argument_names

__all__ = [
    "ANY_JSON",
    "ATOMS",
    "FAULT_KINDS",
    "HOLDS",
    "INPUT",
    "JSON",
    "RESULT",
    "Binding",
    "ChannelCode",
    "Fault",
    "Path",
    "PathStep",
    "Program",
    "argument_names",
]

INPUT = -1
"""As a Binding's argument: the update that triggered."""

RESULT = -2
"""As a Binding's argument: the new update. Only a post filter may use it."""

JSON = "json"
"""As the type of a ChannelCode: any JSON, null too. No channel of a document is of this type: it
is what a fold keeps, and messages call it by its name alone."""

ATOMS = "atoms"
"""The same for what a procedure of a workflow makes, where nothing is null."""

ANY_JSON = frozenset({JSON, ATOMS})

HOLDS = "holds"
"""As the type of a ChannelCode: whether an expression is true, whatever its value is. It sees what
filters see, in either dialect; like JSON no channel of a document is of this type."""

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

    @property
    def what(self) -> str:
        """What messages call it."""
        return self.name if self.type in (HOLDS, *ANY_JSON) else f"channel {self.name}"


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


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Program:
    """The code of a composite stream.

    Equal ids mean equal programs, whatever the streams. `arguments` are the inputs in order.
    For "function" they are the variables of the code; for "expression" the code sees only
    `bindings`. `Math.random` is seeded by the id.
    """

    id: str
    dialect: Literal["function", "expression"]
    arguments: tuple[str, ...]
    channels: tuple[ChannelCode, ...]
    pre_filter: str | None = None
    post_filter: str | None = None
    bindings: tuple[Binding, ...] = ()

    @property
    def is_condition(self) -> bool:
        """Whether it says of inputs what holds, and makes no result of them."""
        return any(each.type == HOLDS for each in self.channels)

    def is_function(self, channel: ChannelCode) -> bool:
        """Tell whether the code of a channel is a function of inputs; else it is an expression."""
        return self.dialect == "function" and channel.type != HOLDS


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault says why a computation has no output; `kind` is one of FAULT_KINDS."""

    kind: str
    message: str
