"""From tenant text to one compiled script, with the proof that no text leaves its place.

A snippet is put between brackets of ours, so it must not contain the closing one: text
such as `1); steal(); (2` would step out. The proof needs no parser but V8's: a snippet is
compiled, not run, inside `( )` and again inside `[0? :0]`. Both read it the same way up to
its first unmatched closing bracket; that one would have to match `(` and `[` at once, so
there is none. And as a comma cannot stand between `?` and `:`, it is one expression.
"""

from __future__ import annotations

import re
import time
import zlib
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import orjson

from sandbox.guest.engines import Engine, Handle, NotParsed
from sandbox.program import ANY_JSON, HOLDS, INPUT, RESULT, Path, Program
from sandbox.text import IDENTIFIER, argument_names, normal_type, skip_blank, without_end

_PLACES = ("(function(){return (", "\n)})"), ("(function(){return [0?", "\n:0]})")

_RESERVED = """
    arguments await break case catch class const continue debugger default delete do else enum
    eval export extends false finally for function if implements import in instanceof interface
    let new null package private protected public return static super switch this throw true
    try typeof var void while with yield
"""
_NOT_NAMES = frozenset(_RESERVED.split())

Place: TypeAlias = tuple[int, int, str]
"""The first line of a snippet in the script, how many it has, and what it is."""

_ODD_LINES = re.compile("\r(?!\n)|[\u2028\u2029]")

_SCALARS = frozenset({"number", "string", "boolean", "geo_point", HOLDS}) | ANY_JSON


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled program is what the runner's define() takes, and the problems in its way."""

    description: bytes
    source: bytes
    problems: list[str]


class Compiler:
    """Compiles programs in one engine, within a deadline on the monotonic clock."""

    def __init__(self, engine: Engine, source_of: Handle) -> None:
        self._engine = engine
        self._source_of = source_of
        self._looked_at: dict[str, tuple[str | None, str]] = {}

    def compile(self, program: Program, slot: int, deadline: float) -> Compiled:
        """Check every snippet alone, then put them together."""
        problems: list[str] = []
        self._looked_at.clear()
        codes = self._channels(program, problems, deadline)
        pre = self._filter("pre-filter", program.pre_filter, problems, deadline)
        post = self._filter("post-filter", program.post_filter, problems, deadline)
        if not program.channels:
            problems.append("the program has no channels")
        variables = _variables(program)
        if any(not IDENTIFIER.fullmatch(name) or name in _NOT_NAMES for name, _, _ in variables):
            problems.append("a binding's name is not a JavaScript name")
        parts = [] if problems else _parts(program, variables, codes, pre, post)
        return Compiled(
            description=_description(program, slot, variables, problems, _places(parts)),
            source=b"null" if problems else _assemble(variables, parts),
            problems=problems,
        )

    def _channels(self, program: Program, problems: list[str], deadline: float) -> list[str]:
        codes: list[str] = []
        functions: dict[str, list[str]] = {}  # the channels of each
        inputs = {*program.arguments, "$input"}
        for channel in program.channels:
            where = channel.what
            if not _known(normal_type(channel.type)):
                problems.append(f"{where}: line 1: unknown type {channel.type!r}")
            code = self._alone(where, channel.code, problems, deadline)
            codes.append(code or "")
            if code is not None and program.is_function(channel):
                problem = _arguments_problem(code, inputs)
                if problem:
                    problems.append(f"{where}: line 1: {problem}")
                else:
                    functions.setdefault(code, []).append(where)
        problems += [
            f"{where}: line 1: must be one function and nothing else"
            for code in self._not_one_function(list(functions), deadline)
            for where in functions[code]
        ]
        return codes

    def _filter(
        self, where: str, code: str | None, problems: list[str], deadline: float
    ) -> str | None:
        if code is None or not code.strip():
            return None
        return self._alone(where, code, problems, deadline)

    def _alone(self, where: str, text: str, problems: list[str], deadline: float) -> str | None:
        """Return the snippet without a closing `;`; None, and add a problem, if it is not code."""
        if text not in self._looked_at:  # many channels may have the same
            self._looked_at[text] = self._look(text, deadline)
        code, problem = self._looked_at[text]
        if code is None:
            problems.append(f"{where}: {problem}")
        return code

    def _look(self, text: str, deadline: float) -> tuple[str | None, str]:
        problem = ""
        for candidate in (text, without_end(text)):
            if candidate is None:
                continue
            try:
                for before, after in _PLACES:
                    source = _bytes(before + candidate + after)
                    self._engine.release(self._engine.evaluate(source, _left(deadline)))
            except NotParsed as error:
                problem = problem or _explained(str(error), text)
            else:
                return candidate, ""
        return None, problem

    def _not_one_function(self, codes: list[str], deadline: float) -> list[str]:
        """Return the codes that are more than one function with blanks and comments around it.

        `function(){...}()` is not: it runs here, and what it returns may have a memory.
        """
        if not codes:
            return []
        source = ",".join(f"({code}\n)" for code in codes)
        made = self._engine.evaluate(_bytes(f"[{source}]"), _left(deadline))
        answer = self._engine.call(self._source_of, b"", _left(deadline), made)
        texts = orjson.loads(self._engine.text_of(answer))
        self._engine.release(made)
        return [code for code, own in zip(codes, texts, strict=True) if not _is_all(own, code)]


def _is_all(own: str, code: str) -> bool:
    start = skip_blank(code)
    end = start + len(own)
    return bool(own) and code[start:end] == own and skip_blank(code, end) == len(code)


def _arguments_problem(code: str, inputs: set[str]) -> str:
    try:
        for name in argument_names(code):
            if name not in inputs:
                return f"{name} is not an input"
    except ValueError as error:
        return str(error)
    return ""


def _known(name: str) -> bool:
    for _ in range(8):
        if not (name.startswith("array[") and name.endswith("]")):
            break
        name = name[6:-1]
    return name in _SCALARS


def _variables(program: Program) -> list[tuple[str, int, Path]]:
    """Return the names that the code can see, each with its argument and path."""
    if any(each.type in ANY_JSON for each in program.channels):
        return []  # it sees its arguments only, of which it may change one
    if program.dialect == "expression":
        return [(each.name, each.argument, each.path) for each in program.bindings]
    seen: list[tuple[str, int, Path]] = [
        (name, index, ())
        for index, name in enumerate(program.arguments)
        if IDENTIFIER.fullmatch(name) and name not in _NOT_NAMES
    ]
    if program.is_condition:
        return seen
    return [("$input", INPUT, ()), ("$result", RESULT, ()), *seen]


def _description(
    program: Program,
    slot: int,
    variables: list[tuple[str, int, Path]],
    problems: list[str],
    places: list[Place],
) -> bytes:
    function = program.dialect == "function"
    positions = {**{name: at for at, name in enumerate(program.arguments)}, "$input": INPUT}
    channels = [
        {
            "name": each.name,
            "type": normal_type(each.type),
            "unit": each.unit if function else None,
            "parameters": [positions[name] for name in argument_names(each.code)]
            if program.is_function(each) and not problems
            else [],
        }
        for each in program.channels
    ]
    return orjson.dumps(
        {
            "slot": slot,
            "problem": problems[0] if problems else None,
            "places": places,
            "seed": zlib.crc32(_bytes(program.id)),
            "arguments": len(program.arguments),
            "variables": [
                [argument, path, any(isinstance(step, tuple) for step in path)]
                for _, argument, path in variables
            ],
            "channels": channels,
            "filters": function,
            "whole": function,
            "never": _blank(program.pre_filter),
            "nothing": _blank(program.post_filter),
        }
    )


class _Part(NamedTuple):
    """A function of the compiled script, and the tenant's code in it, which begins a line."""

    text: str
    code: str | None = None
    what: str = ""


def _parts(
    program: Program,
    variables: list[tuple[str, int, Path]],
    codes: list[str],
    pre: str | None,
    post: str | None,
) -> list[_Part]:
    """Return the functions `set, pre, post, channel...`."""
    names = [name for name, _, _ in variables]
    sets = "".join(f"{name}=arguments[{at}];" for at, name in enumerate(names))
    alone, inside = "(\n{}\n)", "function(){{return (\n{}\n)}}"
    return [
        _Part(f"function(){{{sets}}}"),
        *(
            _Part(inside.format(code), code, what) if code else _Part("null")
            for code, what in ((pre, "pre-filter"), (post, "post-filter"))
        ),
        *(
            _Part(
                (alone if program.is_function(channel) else inside).format(code),
                code,
                channel.what,
            )
            for code, channel in zip(codes, program.channels, strict=True)
        ),
    ]


def _assemble(variables: list[tuple[str, int, Path]], parts: list[_Part]) -> bytes:
    """Write `[set, pre, post, channel...]`: functions that share the program's variables."""
    names = [name for name, _, _ in variables]
    declared = f"var {','.join(names)};" if names else ""
    return _bytes(f"(function(){{{declared}return [{','.join(each.text for each in parts)}]}})()")


def _places(parts: list[_Part]) -> list[Place]:
    """Return which lines of the script are whose; none where engines count lines differently."""
    if any(_ODD_LINES.search(each.code or "") for each in parts):
        return []
    found, line = [], 1
    for each in parts:
        if each.code is not None:
            found.append((line + 1, each.code.count("\n") + 1, each.what))
        line += each.text.count("\n")
    return found


def _blank(code: str | None) -> bool:
    return code is not None and not code.strip()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _left(deadline: float) -> float:
    return deadline - time.monotonic()


def _explained(problem: str, text: str) -> str:
    """Turn "7: SyntaxError: reason" into "line L: reason", where L is a line of the text."""
    line, _, reason = problem.partition(": ")
    last = text.count("\n") + 1
    number = min(int(line), last) if line.isdigit() else last
    return f"line {number}: {reason.removeprefix('SyntaxError: ')}"
