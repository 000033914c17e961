"""A composite stream as a program of the sandbox.

Nothing else below the programs imports the sandbox.
"""

from __future__ import annotations

from sandbox.program import RESULT as RESULT_ARGUMENT
from sandbox.program import Binding, ChannelCode, Program
from servioticy.domain.model import Composite, StreamRef
from servioticy.domain.references import RESULT


def program(ref: StreamRef, version: int, composite: Composite) -> Program:
    """The program of this version of a stream; its arguments are the composite's inputs."""
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
    return Program(
        id=_id(ref, version),
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


def _id(ref: StreamRef, version: int) -> str:
    return f"{ref}@{version}"


def stream_of(program: str) -> StreamRef:
    """The stream that the program of this id computes."""
    service_object, _, stream = program.rpartition("@")[0].partition("/")
    return StreamRef(service_object, stream)
