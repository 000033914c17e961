"""Code that takes the place of a function's own, tells an advice, and calls what was there.

A function is found under many names: by those who imported it, in tables, as a bound method. All
of them share the function object, so it stays, and only its `__code__` is another for a while.
The new code has the parameters of the old: signature, defaults and the errors of wrong calls are
the function's own. It has as many free variables, which Python asks for, and reads none: the old
code runs in a function of its own, with the same cells.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from keyword import iskeyword
from types import CodeType, FunctionType
from typing import Any, Protocol


class Advice(Protocol):
    """Is told of calls. It must not raise: that would be the caller's."""

    def enter(self, correlated: Any, /) -> Any:
        """A call begins; return what `leave` is to know of it."""

    def leave(self, entered: Any, error: BaseException | None, /) -> None:
        """The same call has ended."""


class NotWeavable(Exception):
    """There is nothing to weave here; the message says why."""


WHOLE = """\
{prefix}def _woven({parameters}):
    {free}
    _enter, _leave, _original = '_enter', '_leave', '_original'
    _entered = _enter({correlated})
    try:
        _answer = {call}_original({arguments})
    except BaseException as _error:
        _leave(_entered, _error)
        raise
    _leave(_entered, None)
    return _answer
"""
ASYNC_GENERATOR = """\
async def _woven({parameters}):
    {free}
    _enter, _leave, _original = '_enter', '_leave', '_original'
    _entered = _enter({correlated})
    try:
        _inner = _original({arguments})
        _step = _inner.__anext__()
        while True:
            _value = await _step
            try:
                _sent = yield _value
            except GeneratorExit:
                await _inner.aclose()
                raise
            except BaseException as _error:
                _step = _inner.athrow(_error)
            else:
                _step = _inner.asend(_sent)
    except StopAsyncIteration:
        pass
    except BaseException as _error:
        _leave(_entered, _error)
        raise
    _leave(_entered, None)
"""
OURS = {
    *("_woven", "_enter", "_leave", "_original", "_entered", "_answer", "_error", "_inner"),
    *("_step", "_value", "_sent", "BaseException", "GeneratorExit", "StopAsyncIteration"),
}
KINDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
KEPT_FLAGS = inspect.CO_ITERABLE_COROUTINE


def nests(code: CodeType) -> bool:
    """Whether what is called meanwhile is called by it: between a generator's steps others run."""
    return not code.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR)


def woven(function: FunctionType, advice: Advice, correlated: str = "") -> CodeType:
    """Return code for the function that tells the advice, and the parameter of that name.

    Raises NotWeavable.
    """
    code = function.__code__
    names = {*parameters(code), *code.co_freevars}
    if strange := sorted(each for each in names if iskeyword(each) or not each.isidentifier()):
        raise NotWeavable(f"no code can be written with its name {strange[0]!r}")
    if taken := sorted(names & OURS):
        raise NotWeavable(f"its name {taken[0]!r} is one of ours")
    if correlated and correlated not in parameters(code):
        raise NotWeavable(f"it has no parameter {correlated!r} to find its sequence in")
    try:
        made = _compiled(code, correlated)
    except (SyntaxError, ValueError) as error:  # such as code that no `def` has made
        raise NotWeavable(f"no code can be written for it: {error}") from error
    consts = {"_enter": advice.enter, "_leave": advice.leave, "_original": _original(function)}
    return made.replace(
        co_consts=tuple(_filled(each, consts) for each in made.co_consts),
        co_flags=made.co_flags | code.co_flags & KEPT_FLAGS,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )


def parameters(code: CodeType) -> tuple[str, ...]:
    """Return the names of all parameters, those for the rest last."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(
        code.co_flags & inspect.CO_VARKEYWORDS
    )
    return code.co_varnames[:count]


def _original(function: FunctionType) -> FunctionType:
    """The function as it was, for our code only; all arguments come from there."""
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, None, function.__closure__
    )
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return copy


def _filled(const: Any, consts: dict[str, Any]) -> Any:
    """The constant, or what stands for it; the three names may stand together in a tuple."""
    if isinstance(const, tuple):
        return tuple(_filled(each, consts) for each in const)
    return consts.get(const, const) if isinstance(const, str) else const


def _compiled(code: CodeType, correlated: str) -> CodeType:
    """Code of the same parameters, free variables and kind, all on the function's first line.

    So a traceback shows a line of the function, and `inspect` finds its source.
    """
    flags = code.co_flags & KINDS
    template = ASYNC_GENERATOR if flags == inspect.CO_ASYNC_GENERATOR else WHOLE
    body = template.format(
        prefix="async " if flags == inspect.CO_COROUTINE else "",
        call={inspect.CO_GENERATOR: "yield from ", inspect.CO_COROUTINE: "await "}.get(flags, ""),
        parameters=", ".join(_declared(code)),
        arguments=", ".join(_passed(code)),
        correlated=correlated or "None",
        # Never run: it makes them free variables of ours.
        free=f"if 0: {', '.join(code.co_freevars)}" if code.co_freevars else "pass",
    )
    lines = [f"{each} = None" for each in code.co_freevars] + body.splitlines()
    tree = ast.parse("def _outer():\n" + "\n".join(f"    {each}" for each in lines))
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = code.co_firstlineno  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    outer = compile(tree, code.co_filename, "exec", dont_inherit=True)
    (inner,) = (each for each in outer.co_consts if isinstance(each, CodeType))
    return next(
        each for each in inner.co_consts if isinstance(each, CodeType) and each.co_name == "_woven"
    )


def _declared(code: CodeType) -> Iterator[str]:
    """The parameters as `def` has them. What has a default has it from the function."""
    names = iter(parameters(code))
    for number in range(1, code.co_argcount + 1):
        yield next(names)
        if number == code.co_posonlyargcount:
            yield "/"
    keyword_only = [next(names) for _ in range(code.co_kwonlyargcount)]
    if code.co_flags & inspect.CO_VARARGS:
        yield f"*{next(names)}"
    elif keyword_only:
        yield "*"
    yield from keyword_only
    if code.co_flags & inspect.CO_VARKEYWORDS:
        yield f"**{next(names)}"


def _passed(code: CodeType) -> Iterator[str]:
    """The same as arguments: those that have names only by them."""
    names = iter(parameters(code))
    for _ in range(code.co_argcount):
        yield next(names)
    keyword_only = [next(names) for _ in range(code.co_kwonlyargcount)]
    if code.co_flags & inspect.CO_VARARGS:
        yield f"*{next(names)}"
    yield from [f"{each}={each}" for each in keyword_only]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        yield f"**{next(names)}"
