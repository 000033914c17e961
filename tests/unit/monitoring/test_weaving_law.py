"""What is woven is as it was to everybody: results, errors, signature, and at last its code."""

from __future__ import annotations

import asyncio
import functools
import inspect
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from types import FunctionType, coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring.weaving.trampoline import NotWeavable, woven

Values = st.lists(st.integers(-3, 3), max_size=4)


class Told:
    """An advice that keeps what it is told."""

    def __init__(self) -> None:
        self.entered: list[Any] = []
        self.left: list[str] = []

    def enter(self, correlated: Any) -> Any:
        self.entered.append(correlated)
        return len(self.entered)

    def leave(self, _entered: Any, error: BaseException | None) -> None:
        self.left.append("" if error is None else type(error).__name__)


class Base:
    def both(self, a, b):
        return a, b


class Derived(Base):
    """Methods of all kinds; `super` and `__class__` are free variables."""

    def both(self, a, b=7):
        return __class__, super().both(a, b)

    @classmethod
    def of_class(cls, a, *rest, **named):
        return cls, a, rest, named

    @staticmethod
    def static(a, /, b, *, c=3):
        return a, b, c

    @property
    def prop(self):
        return self, "prop"

    def __private(self, __a, b):
        return __a, b

    private = __private


def plain(a, b=2, /, c=3, *rest, d, e=5, **named):
    return a, b, c, rest, d, e, named


def closure() -> Callable[..., Any]:
    x, y = [1], "y"

    def inner(a, b=x):
        nonlocal y
        y += "y"
        return a / (b[0] + len(x) - 2), y[:2]

    return inner


def captured(a, b):
    return (lambda: (a, b))()


def recursive(a, b):
    return b if a <= 0 else recursive(a - 1, b + 1)


def fails(a, b):
    try:
        return [1, 2][a + 5], b
    except IndexError as error:
        raise ValueError(a) from error


def wrapped_by(function):
    @functools.wraps(function)
    def wrapper(*values, **named):
        return "wrapped", function(*values, **named)

    return wrapper


@wrapped_by
def decorated(a, b):
    return a, b


DERIVED = Derived()
CLOSURE = closure()
INNER = inspect.unwrap(decorated)
SHAPES: dict[str, tuple[Any, Callable[..., Any]]] = {
    "plain": (plain, plain),
    "closure": (CLOSURE, CLOSURE),
    "captured": (captured, captured),
    "lambda": (key := lambda a, b: a // b, key),
    "recursive": (recursive, recursive),
    "fails": (fails, fails),
    "wrapper": (decorated, decorated),
    "within a wrapper": (INNER, decorated),
    "method": (Derived.both, DERIVED.both),
    "classmethod": (vars(Derived)["of_class"].__func__, Derived.of_class),
    "staticmethod": (Derived.static, DERIVED.static),
    "property": (vars(Derived)["prop"].fget, lambda: DERIVED.prop),
    "private": (Derived.private, DERIVED.private),
    "standard": (inspect.unwrap(traceback.format_list), traceback.format_list),
}


def outcome(call: Callable[..., Any], *values: Any, **named: Any) -> tuple[Any, ...]:
    """What comes of a call; of an error all that the caller can know."""
    try:
        return "returned", call(*values, **named)
    except Exception as error:
        cause = error.__cause__
        return type(error), error.args, type(cause), getattr(cause, "args", ())


@pytest.mark.parametrize("shape", SHAPES)
@given(values=Values, named=st.dictionaries(st.sampled_from("abcde"), st.integers(-3, 3)))
def test_nobody_notices_that_a_function_is_woven(
    shape: str, values: list[int], named: dict[str, int]
) -> None:
    """Also where it is called wrongly: the message is its own."""
    function, call = SHAPES[shape]
    before, closed = function.__code__, function.__closure__
    signature, known = inspect.signature(function), dict(vars(function))
    source = inspect.getsource(function)
    plainly, told = outcome(call, *values, **named), Told()
    function.__code__ = woven(function, told)
    try:
        assert inspect.signature(function) == signature
        assert inspect.getsource(function) == source
        assert function.__closure__ == closed
        assert vars(function) == known
        assert outcome(call, *values, **named) == plainly
        assert len(told.entered) == len(told.left)
        assert told.left or plainly[0] is TypeError
        assert not told.left or bool(told.left[-1]) == (plainly[0] != "returned")
    finally:
        function.__code__ = before
    count = len(told.entered)

    assert function.__code__ is before
    assert outcome(call, *values, **named) == plainly
    assert len(told.entered) == count


def sends(a: list[Any]) -> Generator[Any, Any, Any]:
    got, each = [], 0
    try:
        while len(got) < 3:
            try:
                each = yield (each, tuple(got))
                got.append(each)
            except KeyError as error:
                got.append(error.args)
    finally:
        a.append("closed")
    return tuple(got)


@coroutine
def step(value: Any) -> Generator[Any, Any, Any]:
    return (yield value)


async def awaits(a: list[Any]) -> Any:
    got = []
    try:
        for each in range(3):
            try:
                got.append(await step(each))
            except KeyError as error:
                got.append(error.args)
    finally:
        a.append("closed")
    return tuple(got)


@coroutine
def old_coroutine(a: list[Any]) -> Generator[Any, Any, Any]:
    return (yield from sends(a))


async def async_sends(a: list[Any]) -> AsyncGenerator[Any, Any]:
    got: list[Any] = []
    try:
        while len(got) < 3:
            try:
                got.append((yield tuple(got)))
                await asyncio.sleep(0)
            except KeyError as error:
                got.append(error.args)
    finally:
        a.append("closed")


STEPS = st.lists(st.sampled_from(["send", "key", "zero", "close"]), max_size=5)


def driven(made: Any, steps: list[str]) -> list[Any]:
    """What comes of the steps of a generator or a coroutine."""
    seen: list[Any] = []
    seen.append(outcome(made.send, None))
    for each in steps:
        if each == "close":
            seen.append(outcome(made.close))
        elif each == "send":
            seen.append(outcome(made.send, len(seen)))
        else:
            seen.append(outcome(made.throw, {"key": KeyError, "zero": ZeroDivisionError}[each](4)))
    made.close()
    return seen


@pytest.mark.parametrize("function", [sends, awaits, old_coroutine])
@given(steps=STEPS)
def test_a_generator_or_coroutine_goes_its_way(function: FunctionType, steps: list[str]) -> None:
    """Whatever is sent to it or thrown into it; it is measured from its first step to its last."""
    before, told = function.__code__, Told()
    noted: list[Any] = []
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isawaitable)
    known = [each(function) for each in kinds]
    plainly = driven(function(noted), steps), noted
    function.__code__ = woven(function, told, "a")
    try:
        again: list[Any] = []
        assert [each(function) for each in kinds] == known
        function(again).close()
        assert told.entered == []
        assert (driven(function(again), steps), again) == plainly
        assert told.entered == [again]
        assert len(told.left) == 1
    finally:
        function.__code__ = before


async def walked(made: AsyncGenerator[Any, Any], steps: list[str]) -> list[Any]:
    async def result(of: Awaitable[Any]) -> Any:
        try:
            return await of
        except (Exception, StopAsyncIteration) as error:
            return type(error), error.args

    seen = [await result(made.__anext__())]
    for each in steps:
        if each == "close":
            seen.append(await result(made.aclose()))
        elif each == "send":
            seen.append(await result(made.asend(len(seen))))
        else:
            error = {"key": KeyError, "zero": ZeroDivisionError}[each](4)
            seen.append(await result(made.athrow(error)))
    await made.aclose()
    return seen


@given(steps=STEPS)
def test_an_asynchronous_generator_goes_its_way(steps: list[str]) -> None:
    before, told = async_sends.__code__, Told()
    noted: list[Any] = []
    again: list[Any] = []
    plainly = asyncio.run(walked(async_sends(noted), steps))
    async_sends.__code__ = woven(async_sends, told)
    try:
        assert inspect.isasyncgenfunction(async_sends)
        assert asyncio.run(walked(async_sends(again), steps)) == plainly
        assert (again, len(told.left)) == (noted, 1)
    finally:
        async_sends.__code__ = before


def test_a_call_that_is_under_way_ends_as_it_began() -> None:
    """A generator that was begun before goes on unmeasured, one begun woven is measured on."""
    before, told = sends.__code__, Told()
    first = sends([])
    next(first)
    sends.__code__ = woven(sends, told)
    second = sends([])
    next(second)
    sends.__code__ = before
    first.close()
    second.close()

    assert told.left == ["GeneratorExit"]


@pytest.mark.parametrize(
    ("function", "parameter", "why"),
    [
        (lambda _enter: _enter, "", "its name '_enter' is one of ours"),
        (plain, "x", "it has no parameter 'x'"),
        (eval(compile("(x for x in ())", "-", "eval")).gi_code, "", "no code can be written"),
    ],
)
def test_what_cannot_be_woven_says_why(function: Any, parameter: str, why: str) -> None:
    if not isinstance(function, FunctionType):
        function = FunctionType(function, {})
    with pytest.raises(NotWeavable, match=why):
        woven(function, Told(), parameter)


def test_a_traceback_shows_the_function_and_no_line_of_others() -> None:
    before = fails.__code__
    fails.__code__ = woven(fails, Told())
    try:
        with pytest.raises(ValueError, match="9") as raised:
            fails(9, 0)
    finally:
        fails.__code__ = before
    frames = traceback.extract_tb(raised.value.__traceback__)

    assert [each.name for each in frames[-2:]] == ["fails", "fails"]
    assert frames[-2].line == "def fails(a, b):"
    assert frames[-1].line == "raise ValueError(a) from error"
