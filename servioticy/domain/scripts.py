"""A composite stream as a program of the sandbox.

Nothing else below the programs imports the sandbox.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

from sandbox.program import RESULT as RESULT_ARGUMENT
from sandbox.program import Binding, ChannelCode, Program
from servioticy.domain.model import Composite, StreamRef
from servioticy.domain.references import RESULT


CAN_NAME_ANYTHING = ("\\", "eval", "arguments", "Function", "with")
"""In the text of code that can name a variable without writing its name."""


def program(composite: Composite) -> Program:
    """The program of a composite stream; its arguments are the composite's inputs.

    Equal composites have equal programs, whatever the streams are called.
    """
    names = [each.name for each in composite.inputs]
    places = {name: place for place, name in enumerate(names)}
    bindings = [
        Binding(
            f"${number}",
            RESULT_ARGUMENT if each.source == RESULT else places[each.source],
            each.path,
        )
        for number, each in enumerate(composite.references)
    ]
    found = Program(
        id="",
        dialect=composite.dialect,
        arguments=tuple(names),
        channels=tuple(
            ChannelCode(each.name, each.code or "", each.type, each.unit)
            for each in composite.channels
        ),
        pre_filter=composite.pre_filter,
        post_filter=composite.post_filter,
        bindings=tuple(bindings),
        self_argument=composite.own,
    )
    content = repr(found).encode("utf-8", "surrogatepass")
    return replace(found, id=sha256(content).hexdigest())


def reads_own(program: Program) -> bool:
    """Whether the code may read the stream's own last output; where in doubt it does.

    A function may, whether or not that is one of its arguments: then its name is in the text,
    unless it is put together there.
    """
    own = program.self_argument
    if own is None or program.dialect == "expression":
        return any(each.argument == own for each in program.bindings)
    names = (program.arguments[own], *CAN_NAME_ANYTHING)
    texts = [each.code for each in program.channels]
    texts += [each for each in (program.pre_filter, program.post_filter) if each is not None]
    return any(name in text for text in texts for name in names)


def program_name(ref: StreamRef, version: int) -> str:
    """What the program of this version of a stream is called in accounts."""
    return f"{ref}@{version}"


def stream_of(name: str) -> StreamRef:
    """The stream whose program has this name."""
    service_object, _, stream = name.rpartition("@")[0].partition("/")
    return StreamRef(service_object, stream)
