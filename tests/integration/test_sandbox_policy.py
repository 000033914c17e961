"""The allow-list: what a program may be made of, and what its author is told."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sandbox_pools import a_pool
from sandbox_trees import a_call, a_call_of, an_event, events, grow_all, kinds, values

from demonstration import objects
from sandbox import Binding, ChannelCode, Program, SandboxPool
from sandbox.host.worker_client import WorkerClient
from sandbox.program import argument_names
from sandbox.trees import Last, Node, Wake, Wiring


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    pool = a_pool(engine=request.param)
    yield pool
    pool.close()


def a_function(code: str, *inputs: str) -> Program:
    return Program(code, "function", inputs or ("A", "B"), (ChannelCode("t", code, "number"),))


def an_expression(code: str) -> Program:
    bindings = (Binding("$0", 0), Binding("$1", 0))
    channels = (ChannelCode("t", code, "number"),)
    return Program(code, "expression", ("a",), channels, bindings=bindings)


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("function(A){\n  return 1 +;\n}", "line 2, column 13: Unexpected token"),
        ("function(A){ let b = 1; let b = 2 }", "line 1, column 29: Identifier 'b' has already"),
        ("function(A){return 1}()", "line 1, column 1: must be a function"),
        ("function(A){return 1}), (5", "line 1, column 22: Unexpected token"),
        ("function(A){return 1}; f()", "line 1, column 24: text after its end"),
        ("function(Z){return 1}", "line 1, column 10: Z is not an input"),
        ("function({x}){return 1}", "line 1, column 10: the arguments must be plain names"),
        ("function(A){return this}", "line 1, column 20: `this` is not allowed"),
        ("async A => 1", "line 1, column 1: `async` is not allowed"),
        ("function*(A){}", "line 1, column 1: a generator is not allowed"),
        ("function(A){return function*(){}}", "column 20: a generator is not allowed"),
        ("function(A){class B{}}", "a class is not allowed"),
        ("function(A){return /a/.test('a')}", "a regular expression is not allowed"),
        ("function(A){return 2n}", "a bigint is not allowed"),
        ("function(A){return import('x')}", "`import` is not allowed"),
        ("function(A){return A`x`}", "a tagged template is not allowed"),
        ("function(A){with(A){return x}}", "`with` is not allowed"),
        ("function(A){l: for(;;) break l}", "a label is not allowed"),
        ("function(A){debugger}", "`debugger` is not allowed"),
        ("function(A){delete A.x}", "`delete` is not allowed"),
        ("function(A){return 'x' in A}", "`in` is not allowed"),
        ("function(A){return A instanceof Array}", "`instanceof` is not allowed"),
        ("function(A){return new A()}", "`new` is for Array, Date, Map, Set and errors"),
        ("function(A){return new.target}", "`new.target` is not allowed"),
        ("function(A){A.x = 1}", "an input cannot be changed"),
        ("function(A){A.x.y[0]++}", "an input cannot be changed"),
        ("function(A){Math = 1}", "Math cannot be assigned"),
        ("function(A){return [].constructor}", "the name constructor is not allowed"),
        ("function(A){return []['constructor']}", "the name constructor is not allowed"),
        ("function(A){return []['const'+'ructor']}", "the name constructor is not allowed"),
        ("function(A){return []['const'+`ructor`]}", "the name constructor is not allowed"),
        ("function(A){return [].map.caller}", "the name caller is not allowed"),
        ("function(A){return {__proto__: A}}", "the name __proto__ is not allowed"),
        ("function(A){return {'__proto__': A}}", "the name __proto__ is not allowed"),
        ("function(A){return A.__defineGetter__}", "the name __defineGetter__ is not allowed"),
        ("function(A){return arguments}", "the name arguments is not allowed"),
        ("function(A){return \\u0065val('1')}", "the name eval is not allowed"),
        ("function(A){return {get x(){return 1}}}", "a getter or setter is not allowed"),
        ("function(A){return globalThis}", "globalThis is neither an input nor a variable"),
        ("function(A){return B2}", "B2 is neither an input nor a variable nor a known name"),
        ("function(A){return 1} <!-- x", "an HTML comment is not allowed"),
        ("function(A){return 1}\n--> x", "line 2, column 1: an HTML comment is not allowed"),
        ("#!x\nfunction(A){return 1}", "line 1, column 2: Unexpected character '!'"),
        ("function(A){%DebugPrint(1)}", "line 1, column 13: Unexpected token"),
        ("function(A){return '" + "é" * 32_760 + "'}", "more than 65536 bytes of text"),
        ("function(A){return 1" + "+1" * 900 + "}", "more than 60 levels of nesting"),
        ("function(A){return [" + "1," * 16_000 + "]}", "more than 16000 parts of a program"),
        ("function(A){return " + "[" * 70 + "]" * 70 + "}", "more than 60 levels of nesting"),
        ("(" * 2000, "more than 60 levels of nesting"),
    ],
)
def test_functions_are_refused_with_place_and_reason(
    pool: SandboxPool, code: str, problem: str
) -> None:
    """The author finds the place without asking anybody."""
    found = pool.check(a_function(code))

    assert len(found) == 1
    assert found[0].startswith("channel t: line ")
    assert problem in found[0]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("1); (2", "line 1, column 2: Unexpected token"),
        ("(1", "line 1, column 3: Unexpected token"),
        ("(1))", "line 1, column 4: Unexpected token"),
        ("(1) (", "line 1, column 6: Unexpected token"),
        ("(1); 2", "line 1, column 6: text after its end"),
        ("(1, 2)", "column 2: a comma between expressions is not allowed"),
        ("1, 2", "a comma between expressions is not allowed"),
        ("", "Unexpected token"),
        ("x = y = 1", "column 5: an assignment inside an expression is not allowed"),
        ("$0 += 1", "an assignment inside an expression is not allowed"),
        ("$0.x = 1", "an assignment inside an expression is not allowed"),
        ("$0.x++", "`++` or `--` is not allowed"),
        ("$0.map(x => { return 1 })", "a body in braces is not allowed"),
        ("$0.map(function(x) { return 1 })", "`function` is not allowed"),
        ("nobody + 1", "line 1, column 1: nobody is neither an input"),
        ("this.x", "`this` is not allowed"),
        ("(() => 1).constructor('x')", "the name constructor is not allowed"),
    ],
)
def test_expressions_are_refused_with_place_and_reason(
    pool: SandboxPool, code: str, problem: str
) -> None:
    """The paper's language: one expression, or one assignment."""
    found = pool.check(an_expression(code))

    assert len(found) == 1
    assert problem in found[0]


@pytest.mark.parametrize(
    "code",
    [
        "$0*1.8+32", "x = $0*2;", "$0 != null && $1 > 3 ? 1 : 0", "Math.max(...$0)", "-$0",
        "$0.map(x => x > 10)", "$0.filter((x, i) => i % 2).reduce((a, b) => a + b, 0)",
        "$0 + ' km' + String($1)", "`${$0}`", "new Date().getTime()", "$0?.a ?? $1['b']",
        "Boolean($0) && !isNaN($1)", "{a: $0}.a", "[$0, $1][0]", "iot.clamp($0, 0, 1)",
        "(1)", "($0+1)", "(x = $0)", "((($0)) // once more\n)", "($0);", "(($0) + ($1))",
        "/* comment */ $0 // another", "$0 ** 2", "typeof $0 === 'number'", "$0 === \"a'b\"",
    ],
)  # fmt: skip
def test_expressions_of_the_paper_are_accepted(pool: SandboxPool, code: str) -> None:
    """And the idioms of documents of version 0.1.0."""
    assert pool.check(an_expression(code)) == []


@pytest.mark.parametrize(
    "code",
    [
        "function(A,B){ return A.channels.t['current-value'] + B.channels.t['current-value'] }",
        "function(A){var m = {}; m[A.k] = 1; for (var k in m) { n = k } return n.length}",
        "function (A) { switch (A.x) { case 1: return 2; default: break } throw new Error('no') }",
        "(A, B) => { const {x, ...rest} = A; let [y = 1] = [x]; return y + rest.length }",
        "function(A){ try { return JSON.parse(A.text).a } catch (e) { return null } finally { } }",
        "function(A){ function f(n) { return n < 2 ? 1 : n * f(n - 1) } return f(5) }",
        "function(A){ var i = 0; do { i++ } while (i < 3); for (;;) { if (i) break } return i }",
        "function(A){ for (const [k, v] of Object.entries(A)) { if (!v) continue; return k } }",
        "function(A){ return typeof other === 'undefined' ? 1 : 0 }",
        "function($input){return $input.lastUpdate}",
        "function(A){var seen = new Map(), days = new Set(); return seen.size + days.size}",
        "function(A){return 1};  // the end\n",
    ],
)
def test_functions_of_real_documents_are_accepted(pool: SandboxPool, code: str) -> None:
    """Statements, loops, local functions, and whatever the original's documents did."""
    assert pool.check(a_function(code)) == []


def test_variables_are_shared_by_the_channels(pool: SandboxPool) -> None:
    """As in the original: one may use what another assigned."""
    channels = (
        ChannelCode("a", "function(A){ shared = 1; return 1 }", "number"),
        ChannelCode("b", "function(A){ return shared + 1 }", "number"),
    )
    assert pool.check(Program("two", "function", ("A",), channels)) == []
    assert pool.check(Program("one", "function", ("A",), channels[1:]))


def demonstration() -> list[Path]:
    folder = Path(objects.__file__).parent / "documents"
    found = sorted(folder.glob("*.json"))
    assert found
    return found


@pytest.mark.parametrize("path", demonstration(), ids=lambda path: path.stem)
def test_the_documents_of_the_demonstration_are_accepted(pool: SandboxPool, path: Path) -> None:
    """They are what tenants copy."""
    document = json.loads(path.read_text())
    for stream in document["streams"].values():
        codes = [each["current-value"] for each in stream["channels"].values()]
        if document["version"] == "0.1.0":
            continue  # their references are replaced by names before they come here
        names = sorted({name for code in codes for name in argument_names(code)} - {"$input"})
        channels = tuple(ChannelCode(f"c{n}", code, "number") for n, code in enumerate(codes))
        assert pool.check(Program(path.stem, "function", tuple(names), channels)) == []


def test_a_refused_program_does_not_run(pool: SandboxPool) -> None:
    """Not even one that was stored before the rules; its computations say why."""
    code = "function(A){ return [].constructor.name.length }"
    refused = a_call(a_function(code, "A"), *events(8), lasts=[Last(1, 5, b"{}")])

    (grown,) = pool.grow("tenant", [refused])

    assert kinds(grown) == {"stale": 5, "policy": 3}
    (fault,) = [each for each in grown.ended if each.kind == "policy"]
    assert "channel t: line 1, column 24: the name constructor is not allowed" in fault.message
    assert fault.inputs == [8]


def test_in_a_tree_only_the_refused_do_not_run(pool: SandboxPool) -> None:
    """What they would have woken is not reached; all others are."""
    bad, good = a_function("function(A){return this}", "A"), a_function("A => A.lastUpdate", "A")
    nodes = (
        Node((Wake(0, 1, 0), Wake(1, 2, 0))),
        Node((Wake(0, 3, 0),), bad, ((0,),)),
        Node((Wake(0, 3, 1),), good, ((0,),)),
        Node((), a_function("(A, B) => A === null ? B.lastUpdate : 0"), ((1,), (2,))),
    )

    (grown,) = pool.grow("tenant", [a_call_of(Wiring("mixed", nodes), *events(2))])

    assert values(grown) == [[1, 1], [2, 2]]
    assert kinds(grown) == {"policy": 2, "emitted": 4}


def test_a_refused_program_does_not_come_into_the_engine(pool: SandboxPool) -> None:
    """Where what calls itself would run as soon as it is read."""
    runs = "function(A){return 1}(function(){while(true){}}())"
    call = a_call(a_function(runs, "A"), an_event())
    before = pool.kills

    assert kinds(grow_all(pool, call)) in ({"policy": 1}, {"syntax": 1})
    assert pool.kills == before


def test_the_checker_is_asked_once_for_a_program(pool: SandboxPool) -> None:
    """The hot path does not parse."""
    call = a_call(a_function("function(A){return 2}", "A"), an_event())
    pool.grow("tenant", [call])
    pool._approval.close()

    pool.grow("tenant", [call])

    assert pool._approval._checker is None


def test_a_dead_checker_is_replaced(pool: SandboxPool) -> None:
    """It is nobody's fault, and nobody notices."""
    pool.check(a_function("function(A){return 3}"))
    checker = pool._checking._short.approval._checker
    assert checker
    checker.kill()

    assert pool.check(a_function("function(A){return 4}")) == []


def test_a_checker_that_is_prepared_has_looked_at_something_once(
    pool: SandboxPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it looks with is compiled by then; and nobody pays for it."""
    seen, check = list[object](), WorkerClient.check

    def checks(worker: WorkerClient, programs: Sequence[bytes], *rest: Any) -> Any:
        seen.append(check(worker, programs, *rest))
        return seen[-1]

    monkeypatch.setattr(WorkerClient, "check", checks)
    own = a_pool(engine=pool.options.engine)
    own.prepare()
    own.prepare()
    used = own.cpu_seconds()
    own.close()

    assert seen == [[[]]], "once, and there is nothing wrong with it"
    assert used == {}


def test_a_checker_that_nobody_has_asked_waits_however_long(pool: SandboxPool) -> None:
    """Whoever comes first after an idle night does not wait for its start; once asked, it goes."""
    own = a_pool(engine=pool.options.engine, idle_seconds=0.0)
    own.prepare()
    waits = own._approval._checker
    own.grow("tenant", [a_call(a_function("function(A){return 2}", "A"), an_event())])
    asked = own._approval._checker
    own.prepare()
    another = own._approval._checker
    own.close()

    assert waits is not None
    assert asked is waits
    assert another is not waits
