"""What programs mean, in real V8: the tables of the document contract, sections 2.2 to 2.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sandbox_pools import a_pool
from sandbox_trees import VALUE, Outcome, a_call, an_event, an_update, result
from sandbox_trees import once as once_of

from sandbox import INPUT, RESULT, Binding, ChannelCode, Program, SandboxPool, argument_names
from sandbox.trees import Ended, Last, Made
from servioticy.domain.documents import parse_service_object
from servioticy.domain.model import StreamRef
from servioticy.domain.scripts import program


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    pool = a_pool(engine=request.param)
    yield pool
    pool.close()


def a_function(code: str, type_: str = "number", **more: Any) -> Program:
    """A stream B over the inputs A and g, and its own last output."""
    channels = more.pop("channels", (ChannelCode("t", code, type_, more.pop("unit", None)),))
    name = repr((code, type_, more, channels))
    return Program(name, "function", ("A", "g", "B"), channels, **more)


def an_expression(code: str, type_: str = "number", **more: Any) -> Program:
    """The same inputs; $0 and $1 are the values of A and g, $2 the whole of g, $r the result."""
    bindings = (
        Binding("$0", 0, VALUE),
        Binding("$1", 1, VALUE),
        Binding("$2", 1),
        Binding("$i", INPUT, VALUE),
        Binding("$r", RESULT, VALUE),
    )
    channels = (ChannelCode("t", code, type_, "ignored"),)
    name = repr((code, type_, more))
    return Program(name, "expression", ("A", "g"), channels, bindings=bindings, **more)


def once(pool: SandboxPool, program: Program, a: Any = 1, g: Any = None, at: int = 2) -> Outcome:
    """One step triggered by A at 2, g being of 1."""
    lasts = [] if g is None else [Last(1, 1, an_update(g))]
    own = 2 if len(program.arguments) > 2 else None
    return once_of(pool, a_call(program, an_event(a, at), lasts=lasts, own=own))


A = "A.channels.t['current-value']"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (f"function(A){{return {A}*2}}", 8),
        (f"A => {A} + 1", 5),
        (f"(A, g) => {{ return {A} }};", 4),
        (f"/* c */ function (A, g) {{ return {A}; }} // end", 4),
        ("function(A){return $input === A}", "error"),
        ("function(A){return $input === A ? 1 : 0}", 1),
        ("function($input){return $input.lastUpdate}", 2),
        ("function(A){return B === null ? 1 : 0}", 1),
        ("function(A){return null}", "filtered"),
        ("function(A){return 0/0}", "filtered"),
        ("function(A){}", "error"),
        ("function(A){throw new Error('no')}", "script-error"),
        ("function(A,g){return g.channels.t}", "script-error"),
        ("function(A){return eval('1')}", "policy"),
        ("function(A){A.channels.t['current-value']=9; return " + A + "}", "policy"),
        ("function(A){var a=A.channels.t; a['current-value']=9; return " + A + "}", 4),
        ("function(A){for(i=0;i<3;i++);return i}", 3),
        ("function f(A){f.n=(f.n||0)+1;return f.n||7}", 7),
        ("function(A){return Date.now() + new Date().getTime()}", 4000),
        ("function(A){return 1}()", "syntax"),
        ("function(A){return 1}), (5", "syntax"),
        ("function(Z){return 1}", "syntax"),
        ("function(A){return", "syntax"),
        ("41", "syntax"),
    ],
)
def test_functions(pool: SandboxPool, code: str, expected: Any) -> None:
    """Version 0.2.0 of the documents."""
    assert result(once(pool, a_function(code), 4)) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("$0*1.8+32", 39.2),
        ("x = $0*2;", 8),
        ("3-$0", -1),
        ("(1)", 1),
        ("($0+1)", 5),
        ("$1*1.8+32", 32),
        ("$2 != null && $1 > 3 ? 1 : 0", 0),
        ("$i", 4),
        ("null", "error"),
        ("1/0", "error"),
        ("undefined", "error"),
        ("nobody", "policy"),
        ("1); (2", "syntax"),
        ("1, 2", "policy"),
        ("", "syntax"),
    ],
)
def test_expressions(pool: SandboxPool, code: str, expected: Any) -> None:
    """Version 0.1.0, references already replaced by names."""
    assert result(once(pool, an_expression(code), 4)) == expected


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        ("number", 1.5, 1.5),
        ("Number", " -12e1 ", -120),
        ("number", True, "error"),
        ("number", "abc", "error"),
        ("number", "0x10", "error"),
        ("number", "", "error"),
        ("number", {}, "error"),
        ("boolean", True, True),
        ("boolean", 0, False),
        ("boolean", 2, True),
        ("boolean", "false", False),
        ("boolean", 0.5, "error"),
        ("boolean", "yes", "error"),
        ("string", -68, "-68"),
        ("string", True, "true"),
        ("string", "a\nb\u2028", "a\nb\u2028"),
        ("string", [1], "error"),
        ("string", "x" * 70_000, "error"),
        ("geo_point", "41.5, 2", "41.5,2"),
        ("geo_point", [2, 41.5], "41.5,2"),
        ("GEO_POINT", {"lat": 41.5, "lon": 2}, "41.5,2"),
        ("geo_point", "here", "error"),
        ("geo_point", [1], "error"),
        ("Array[ Number ]", [1, "2"], [1, 2]),
        ("array[boolean]", [True, 0], [True, False]),
        ("array[geo_point]", [[2, 1]], ["1,2"]),
        ("array[number]", [1, None], "error"),
        ("array[number]", 1, "error"),
        ("array[array[number]]", [[1], []], [[1], []]),
        ("colour", 1, "syntax"),
    ],
)
def test_values_are_bound_to_the_declared_type(
    pool: SandboxPool, type_: str, value: Any, expected: Any
) -> None:
    """Lenient as the original was, but never a guess."""
    assert result(once(pool, an_expression("$0", type_), value)) == expected
    assert result(once(pool, a_function(f"function(A){{return {A}}}", type_), value)) == expected


def test_a_binding_error_names_channel_type_and_value(pool: SandboxPool) -> None:
    """The owner reads it in the stream's status."""
    fault = once(pool, an_expression("$0"), "abc")

    assert isinstance(fault, Ended)
    assert (fault.kind, fault.message) == ("error", 'channel t: "abc" is not a number')


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"pre_filter": "$0 > 0"}, 4),
        ({"pre_filter": "$0 > 9"}, "filtered"),
        ({"pre_filter": "($0 > 0)", "post_filter": "($r > 9)"}, "filtered"),
        ({"pre_filter": ""}, "filtered"),
        ({"pre_filter": "$0.x.y"}, "script-error"),
        ({"post_filter": "$r == 4"}, 4),
        ({"post_filter": "$r != 4"}, "filtered"),
        ({"post_filter": " "}, "filtered"),
        ({"post_filter": "}); ("}, "syntax"),
    ],
)
def test_filters_of_expressions(pool: SandboxPool, filters: dict[str, str], expected: Any) -> None:
    """Boolean(code), so that empty is false: one real document has it."""
    assert result(once(pool, an_expression("$0", **filters), 4)) == expected


def test_filters_of_functions_see_the_same_variables(pool: SandboxPool) -> None:
    """And `$result` afterwards."""
    code = f"function(A){{return {A}+1}}"
    seen = f"$result.channels.t['current-value'] === {A} + 1 && g === null && $input === A"

    assert result(once(pool, a_function(code, post_filter=seen), 4)) == 5
    assert result(once(pool, a_function(code, pre_filter="A === null"), 4)) == "filtered"


def test_an_output_is_compact_and_copies_the_unit(pool: SandboxPool) -> None:
    """On one line, in the order of the channels."""
    channels = (
        ChannelCode("t", "function(A){return 72.5}", "number", "F"),
        ChannelCode('q"', "function(A){return 'x'}", "string"),
    )
    outcome = once(pool, a_function("", channels=channels))

    expected = (
        b'{"channels":{"t":{"current-value":72.5,"unit":"F"},'
        b'"q\\"":{"current-value":"x"}},"lastUpdate":2}'
    )
    assert isinstance(outcome, Made)
    assert (outcome.timestamp, outcome.document) == (2, expected)


def test_expected_values_of_the_original(pool: SandboxPool) -> None:
    """The tests of the original dispatcher, A=1 at 2 and group=1 at 1 gives 2 at 2."""
    both = f"function(A,g){{return {A} + g.channels.t['current-value']}}"
    over = f"function(A){{return {A}.map(function(x){{return x>10}})}}"
    positive = f"function(A){{return {A} < 0 ? null : {A}}}"

    outcome = once(pool, a_function(both), 1, 1)

    assert isinstance(outcome, Made)
    assert (result(outcome), outcome.timestamp) == (2, 2)
    assert result(once(pool, a_function(positive), -1)) == "filtered"
    numbers = [20, 10, -2, 35, 44]
    booleans = [True, False, False, True, True]
    assert result(once(pool, a_function(over, "array[boolean]"), numbers)) == booleans
    assert result(once(pool, an_expression("$0", pre_filter="$0>0"), -1)) == "filtered"
    assert result(once(pool, an_expression("$0", post_filter="$r>0"), -1)) == "filtered"


def test_nothing_undeclared_stays_for_the_next_program(pool: SandboxPool) -> None:
    """Each update had an engine of its own."""
    first = a_function("function(A){left = 5; return left}")
    second = a_function("function(A){return typeof left === 'undefined' ? 1 : 0}")

    assert result(once(pool, first)) == 5
    assert result(once(pool, second)) == 1


def test_chance_is_the_triggers(pool: SandboxPool) -> None:
    """A replay must agree."""
    dice = a_function("function(A){return Math.random()}")

    assert once(pool, dice, at=2) == once(pool, dice, at=2)
    assert result(once(pool, dice, at=2)) != result(once(pool, dice, at=3))


def test_streams_of_one_code_throw_dice_of_their_own(pool: SandboxPool) -> None:
    """The seed is of the program, and the stream is in its id where it throws any."""
    code = "function(A){return Math.random()}"
    ones = program_of("one", code)
    others = program_of("another", code)

    assert ones.id != others.id
    assert result(once(pool, ones)) == result(once(pool, ones))
    assert result(once(pool, ones)) != result(once(pool, others))
    assert program_of("one", "A => 1").id == program_of("another", "A => 1").id


def program_of(service_object: str, code: str) -> Program:
    """The program of a stream of a Service Object."""
    channels = {"t": {"type": "number", "current-value": code}}
    streams = {"A": {"channels": {"t": {"type": "number"}}}, "s": {"channels": channels}}
    document = {"version": "0.2.0", "streams": streams}
    composite = parse_service_object(document, service_object, argument_names).stream("s")
    assert composite is not None
    assert composite.composite is not None
    return program(StreamRef(service_object, "s"), 1, composite.composite)


def test_check_names_channel_and_line(pool: SandboxPool) -> None:
    """The owner of the document reads it in the refusal."""
    program = a_function("function(A){\n return 1 +\n }", post_filter="(")

    problems = pool.check(program)

    assert problems[0] == "channel t: line 3, column 2: Unexpected token"
    assert problems[1].startswith("post-filter: line 1, column 2: ")
    assert pool.check(a_function(f"function(A){{return {A}}}")) == []
