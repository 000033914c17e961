"""A composite stream as a program of the sandbox. The kernel's only word with `sandbox`."""

from __future__ import annotations

from sandbox.program import RESULT as RESULT_ARGUMENT
from sandbox.program import Binding, ChannelCode, Path, Program
from servioticy.model import Composite, Reference, StreamRef
from servioticy.references import RESULT, selectors


def program(ref: StreamRef, version: int, composite: Composite) -> Program:
    """The program of this version of a stream.

    Its arguments are the composite's inputs, and after them one for each of `looked_up`.
    """
    names = [each.name for each in composite.inputs]
    extra = looked_up(composite)
    bindings = []
    for number, reference in enumerate(composite.references):
        path: Path = reference.steps or ()
        if reference.source == RESULT:
            argument = RESULT_ARGUMENT
            path = selectors(reference) if reference.steps is None else path
        elif reference.steps is not None:
            argument = names.index(reference.source)
        else:
            argument = len(names) + extra.index(reference)
        bindings.append(Binding(f"${number}", argument, path))
    return Program(
        id=_id(ref, version),
        dialect=composite.dialect,
        arguments=(*names, *(f"{each.source}{each.expression[1:]}" for each in extra)),
        channels=tuple(
            ChannelCode(each.name, each.code or "", each.type, each.unit)
            for each in composite.channels
        ),
        pre_filter=composite.pre_filter,
        post_filter=composite.post_filter,
        bindings=tuple(bindings),
        self_argument=composite.own,
    )


def looked_up(composite: Composite) -> list[Reference]:
    """The references that a JSONPath interpreter resolves before the program runs."""
    return [each for each in composite.references if each.steps is None and each.source != RESULT]


def _id(ref: StreamRef, version: int) -> str:
    return f"{ref}@{version}"


def stream_of(program: str) -> StreamRef:
    """The stream that the program of this id computes."""
    service_object, _, stream = program.rpartition("@")[0].partition("/")
    return StreamRef(service_object, stream)
