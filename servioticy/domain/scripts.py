"""A composite stream as a program of the sandbox.

Beside what asks evaluators nothing else below the programs imports the sandbox.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from weakref import WeakValueDictionary

from sandbox.encoding import encode_program
from sandbox.program import HOLDS, JSON, Binding, ChannelCode, Program
from sandbox.program import RESULT as RESULT_ARGUMENT
from servioticy.domain.model import Composite, Reference, Stream, StreamRef
from servioticy.domain.references import RESULT
from servioticy.domain.windowed import FOLD, STATE, WHEN, WindowsOf, parts
from servioticy.domain.windows.model import Fold, Window

CHANCE = b"random"
"""What code says that depends on the program's id: `Math.random` is seeded by it."""


NAME = re.compile(r"[\w$]+")
"""What code names, and whatever else looks like it."""

CAN_NAME_ANYTHING = re.compile(r"\\|eval|arguments|Function")
"""Is found in code that can name a variable without writing its name."""


def program(ref: StreamRef, version: int, composite: Composite) -> Program:
    """The program of this version of a stream; its arguments are the composite's inputs.

    Composites of equal code share one program, unless it throws dice: no two streams are to
    throw the same.
    """
    names = [each.name for each in composite.inputs]
    content = Program(
        id="",
        dialect=composite.dialect,
        arguments=tuple(names),
        channels=tuple(
            ChannelCode(each.name, each.code or "", each.type, each.unit)
            for each in composite.channels
        ),
        pre_filter=composite.pre_filter,
        post_filter=composite.post_filter,
        bindings=_bindings(composite.references, names),
    )
    return identified(content, program_name(ref, version))


def fold_program(fold: Fold, inputs: Sequence[str], name: str) -> Program:
    """The program of a fold over windows of these inputs, of the stream's program of that name.

    What it makes is a channel's value that is any JSON.
    """
    channels = (ChannelCode(FOLD, fold.code, JSON),)
    return identified(Program("", "function", (STATE, *inputs), channels), name)


def condition_program(code: WindowsOf, inputs: Sequence[str], name: str) -> Program:
    """The program that says whether windows of these inputs come out, of a stream's of that name.

    What it makes is a channel's value that is true or false.
    """
    window = code.window
    if not isinstance(window, Window) or window.when is None:
        raise ValueError(f"{name} has no condition")
    names = [*inputs, *([STATE] if window.fold is not None else [])]
    channels = (ChannelCode(WHEN, window.when, HOLDS),)
    bindings = _bindings(code.references, names)
    return identified(Program("", code.dialect, tuple(names), channels, bindings=bindings), name)


def _bindings(references: Iterable[Reference], names: Sequence[str]) -> tuple[Binding, ...]:
    places = {name: place for place, name in enumerate(names)}
    return tuple(
        [
            Binding(
                f"${number}",
                RESULT_ARGUMENT if each.source == RESULT else places[each.source],
                each.path,
            )
            for number, each in enumerate(references)
        ]
    )


def programs_of(stream: Stream, version: int = 0) -> Iterator[Program]:
    """The programs by which a stream is computed."""
    for part in parts(stream):
        composite = part.composite
        if composite is None:
            continue
        if composite.operator is None:
            yield program(part.ref, version, composite)
        elif isinstance(composite.operator, WindowsOf):
            names = [each.name for each in composite.inputs]
            yield from _programs_of_windows(
                composite.operator, names, program_name(part.ref, version)
            )


def _programs_of_windows(code: WindowsOf, inputs: Sequence[str], name: str) -> Iterator[Program]:
    if code.fold is not None:
        yield fold_program(code.fold, inputs, name)
    if code.has_condition:
        yield condition_program(code, inputs, name)


def identified(content: Program, name: str) -> Program:
    """The program with an id that those of equal code share, unless it throws dice."""
    text = encode_program(content)
    digest = sha256(text).hexdigest()
    return replace(content, id=f"{digest} {name}" if CHANCE in text else digest)


class Programs:
    """The programs of composites; what is made once is remembered as long as somebody has it."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[Hashable, Program] = WeakValueDictionary()

    def of(self, ref: StreamRef, version: int, composite: Composite) -> Program:
        """The program of this version of a stream."""
        code = code_of(composite)
        found = self._known.get(code)
        if found is None:
            found = program(ref, version, composite)
            if is_anybodys(found):
                self._known[code] = found
        return found


def code_of(composite: Composite) -> Hashable:
    """All of a composite that its program is made of, whatever its stream."""
    return (
        composite.dialect,
        tuple([each.name for each in composite.inputs]),
        composite.channels,
        composite.pre_filter,
        composite.post_filter,
        composite.references,
    )


def is_anybodys(program: Program) -> bool:
    """Whether all composites of this code have this program: it throws no dice."""
    return " " not in program.id


def reads_own(program: Program, own: int | None) -> bool:
    """Whether the code may read the stream's own last output; where in doubt it does.

    A function may, whether or not that is one of its arguments: then its name is in the text,
    unless it is put together there.
    """
    if own is None or program.dialect == "expression":
        return any(each.argument == own for each in program.bindings)
    name = program.arguments[own]
    texts = [each.code for each in program.channels]
    texts += [each for each in (program.pre_filter, program.post_filter) if each is not None]
    # One expression for all names: to compile one takes longer than to search.
    return not NAME.fullmatch(name) or any(
        CAN_NAME_ANYTHING.search(text) or (name in text and name in NAME.findall(text))
        for text in texts
    )


def program_name(ref: StreamRef, version: int) -> str:
    """What a stream's program is called in accounts and suspensions."""
    return f"{ref}@{version}"


def stream_of(program_name: str) -> StreamRef:
    """The stream whose program is called so."""
    service_object, _, stream = program_name.rpartition("@")[0].partition("/")
    return StreamRef(service_object, stream)
