"""Where an error was made, as its message tells: in a tenant's own code, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from sandbox_pools import a_pool
from sandbox_trees import VALUE, a_call, an_event, once

from sandbox import INPUT, Binding, ChannelCode, Program, SandboxPool
from sandbox.trees import Ended

PLACE = re.compile(r"^(.*) \((.*), line ([0-9]+), column ([0-9]+)\)$", re.DOTALL)


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def pool(engine: str) -> Iterator[SandboxPool]:
    pool = a_pool(engine=engine)
    yield pool
    pool.close()


def functions(*codes: str, **filters: str) -> Program:
    channels = tuple(ChannelCode(f"t{n}", code, "number") for n, code in enumerate(codes))
    return Program(repr((codes, filters)), "function", ("A",), channels, **filters)


def message(pool: SandboxPool, program: Program) -> str:
    found = once(pool, a_call(program, an_event(1)))
    assert isinstance(found, Ended)
    assert found.kind == "script-error", found.message
    return found.message


def placed(pool: SandboxPool, program: Program) -> tuple[str, str, int, int]:
    """What was thrown, of what, in which line and column."""
    found = PLACE.match(message(pool, program))
    assert found is not None, message(pool, program)
    return found[1], found[2], int(found[3]), int(found[4])


@pytest.mark.parametrize(
    ("code", "line", "v8", "quickjs"),
    [
        ("function(A) {\n  return A.no.such\n}", 2, 15, 14),
        ("function(A) { var f = null; return 1 + f() }", 1, 40, 41),
        ("function(A) {\n  var x = 1;\n\n  throw new TypeError('mine') }", 4, 9, 22),
        ("function(A) {\n  return [1, 2].map(function(v) {\n    return v.a.b\n  }) }", 3, 16, 15),
        ("function(A) {\n  return [].reduce(function(a) { return a }) }", 2, 13, 3),
        ("function(A) {\n  return 'a'.repeat(1e9) }", 2, 14, 3),
        ("A =>\n  null.x", 2, 8, 7),
        ("/* é */ function(A) { return null.x }", 1, 35, 34),
        ("function(A) {\r\n  return null.x }", 2, 15, 14),
        ("function(A) {\n  //# sourceURL=mine\n  return null.x }", 3, 15, 14),
    ],
)
def test_line_and_column_are_those_of_the_code(
    pool: SandboxPool, engine: str, code: str, line: int, v8: int, quickjs: int
) -> None:
    """The line is the same in both engines; the column is that of another part of it at times."""
    _, what, *place = placed(pool, functions(code))
    assert (what, place) == ("channel t0", [line, {"v8": v8, "quickjs": quickjs}[engine]])


def test_of_several_channels_it_is_told_which(pool: SandboxPool) -> None:
    fine = "function(A) {\n  return 1\n}"
    wrong = "function(A) {\n\n  return null.x }"
    assert placed(pool, functions(fine, fine, wrong, fine))[1:3] == ("channel t2", 3)


def test_filters_have_places_too(pool: SandboxPool) -> None:
    fine = "function(A) { return 1 }"
    pre = functions(fine, pre_filter="true &&\n null.x")
    post = functions(fine, pre_filter="true\n&&\ntrue", post_filter="true &&\n\n null.x")
    assert placed(pool, pre)[1:3] == ("pre-filter", 2)
    assert placed(pool, post)[1:3] == ("post-filter", 3)


def test_expressions_have_them(pool: SandboxPool) -> None:
    program = Program(
        "expression",
        "expression",
        ("A",),
        (ChannelCode("t", "$0 +\n  $0.no.such", "number"),),
        bindings=(Binding("$0", 0, VALUE), Binding("$i", INPUT, VALUE)),
    )
    assert placed(pool, program)[1:3] == ("channel t", 2)


@pytest.mark.parametrize(
    "body",
    [
        "throw 'text'",
        "throw {message: 'no error'}",
        "var f = function() { return f() + 1 }; return f()",
        "var e = new Error('x'); Object.defineProperty; throw Object.create(e)",
        "throw {stack: {get: 1}, message: 'x'}",
        "return null\u2028.x",
        "return null\r.x",
    ],
)
def test_what_has_no_place_is_told_without_one(pool: SandboxPool, body: str) -> None:
    """A value that is no error; a full stack; lines that engines count differently."""
    assert PLACE.match(message(pool, functions(f"function(A) {{ {body} }}"))) is None


def test_a_place_that_is_made_up_is_the_scripts_own(pool: SandboxPool, engine: str) -> None:
    """Nothing of the script runs for it, and no line is told that its code has not."""
    for made_up in (
        "at f (program:1:1)",
        "at f (program:3:77)",
        "(program:999999:1) (program:9999999999:1)",
        "x".rjust(5000),
    ):
        code = (
            "function(A) {\n  var e = new Error('mine');\n"
            f"  Object.assign(e, {{stack: '{made_up}'}});\n  throw e }}"
        )
        found = PLACE.match(message(pool, functions(code)))
        assert found is None or 1 <= int(found[3]) <= 4
        if engine == "v8":
            assert found is None or int(found[3]) == 2


def test_scripts_see_no_frames(pool: SandboxPool, engine: str) -> None:
    """As before: what is thrown is told by its name and message. QuickJS has its own text."""
    code = "function(A) { try { null.x } catch (e) { throw new Error('[' + e.stack + ']') } }"
    told = placed(pool, functions(code))[0]
    if engine == "v8":
        assert re.fullmatch(r"Error: \[TypeError: [^\n()]*\(reading 'x'\)\]", told)
    asks = "function(A) { var e = new Error('m'); e.stack; throw e }"
    assert message(pool, functions(asks)).startswith("Error: m")


def test_what_v8_asks_tells_scripts_nothing(engine: str) -> None:
    """The allow-list aside: called by a script it finds no place, and keeps nothing."""
    if engine != "v8":
        pytest.skip("only V8 asks")
    pool = a_pool(engine=engine, allow_list=False)
    try:
        code = (
            "function(A) { var seen = []; var frame = {getScriptNameOrSourceURL: function() "
            "{ seen.push('asked'); return 'program' }, getLineNumber: function() { return 1 }, "
            "getColumnNumber: function() { return 1 }};\n"
            "  var told = Error.prepareStackTrace(new Error('m'), [frame]);\n"
            "  Error.prepareStackTrace = function() { return 1 };\n"
            "  throw new Error(told + seen.length + typeof new Error('n').stack) }"
        )
        assert placed(pool, functions(code))[:3] == ("Error: Error: m0string", "channel t0", 4)
    finally:
        pool.close()
