"""The locked realm: nothing leaks from program to program, nothing leads outside of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from realm_programs import UPDATE, a_program, a_region, told
from sandbox_pools import a_pool
from sandbox_trees import a_call as a_call_of_trees
from sandbox_trees import a_call_of, grow_all, once, one_by_one, value_of

from sandbox import Program, SandboxPool
from sandbox.trees import Call, Ended, Event, Made


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    """Without the allow-list: the realm must hold by itself, in either engine."""
    pool = a_pool(allow_list=False, engine=request.param)
    yield pool
    pool.close()


def a_call(program: Program, *times: int) -> Call:
    return a_call_of_trees(program, *[Event(0, at, UPDATE) for at in times or (1,)])


def value(pool: SandboxPool, body: str, tenant: str = "tenant") -> Any:
    """What the body returns, as text, or how it ended."""
    outcome = once(pool, a_call(a_program(f"return String({body})")), tenant)
    return value_of(outcome) if isinstance(outcome, Made) else outcome


def process_of(pool: SandboxPool) -> int:
    """The tenant's process, which is started where there is none."""
    with pool._exclusion:
        return pool._workers.of("tenant").pid


# What a later program sees of the realm: own names and texts of everything it can reach.
CANARY = """
(function(){
  var seen = [], out = [];
  function look(name, value, depth) {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) {
      out.push(name + '=' + String(value)); return;
    }
    if (seen.includes(value) || depth > 3) return;
    seen.push(value);
    for (var key in value) out.push(name + '.' + key + ' in');
    var own = Object.keys(value);
    for (var i = 0; i < own.length; i++) look(name + '.' + own[i], value[own[i]], depth + 1);
  }
  var roots = {Object, Array, Number, String, Boolean, Math, JSON, Date, RegExp, Map, Set, Error,
    TypeError, iot, parseInt, isNaN, array: [1], object: {}, text: 'a', call: (x) => x};
  for (var name in roots) look(name, roots[name], 0);
  out.push(typeof leaked, typeof x, this === undefined ? '' : Object.keys(this).join());
  out.push([3,1,2].sort().join(), [1,2].concat([3]).map(x => x + 1).join(), Math.max(1, 2));
  out.push(JSON.stringify({a: [1, {b: 2}], c: 'd'}), JSON.parse('{"a":1}').a, 'ab'.split(''));
  out.push([...'abc'].join(), [...[1,2]].length, String(new Date(5).getTime()), parseFloat('1.5'));
  out.push(Object.keys({a: 1}).join(), ({}).toString(), [].toString(), (5).toString(), 'x'.trim());
  out.push(({}).x, ({}).toJSON, [].x, (1).x, ''.x, (() => 1).x, new Error('e').message);
  return out.join(';');
})()
""".replace("\n", " ")

POLLUTIONS = [
    "Object.prototype.x = 1",
    "({}).__proto__.x = 1",
    "Array.prototype.x = 1",
    "[].constructor.prototype.x = 1",
    "Object.setPrototypeOf(Array.prototype, {x: 1})",
    "Object.setPrototypeOf(this, {leaked: 1})",
    "Object.defineProperty(Object.prototype, 'x', {get() { return 1 }})",
    "Object.defineProperty(this, 'leaked', {value: 1})",
    "Object.prototype.__defineGetter__('x', () => 1)",
    "Object.freeze(this)",
    "Object.preventExtensions(this)",
    "Object.seal(this)",
    "JSON.parse = () => 7",
    "JSON.stringify = () => '7'",
    "Array.prototype.push = () => 7",
    "Array.prototype.map = () => [7]",
    "Array.prototype[Symbol.iterator] = function* () { yield 7 }",
    "[][Symbol.iterator]().constructor.prototype.next = () => ({done: true})",
    "[].values().next = 1; [].values().x = 1",
    "Number.prototype.toJSON = Object.prototype.toJSON = () => 7",
    "Object.defineProperty(Array.prototype, 0, {set(v) {}})",
    "Object.defineProperty(Object.prototype, 'v', {set(v) {}})",
    "Array[Symbol.species] = function () { return [7] }",
    "Array.prototype.constructor = function () { return [7] }",
    "/(a)/.exec('a'); RegExp.$1 = 'leaked'",
    "/(secret)/.exec('secret')",
    "Symbol.for('leaked').x = 1",
    "Math.max = () => 7",
    "Math.random = () => 0.5",
    "Date = function () { return {getTime: () => 7} }",
    "Date.now = () => 7",
    "Date.prototype.getTime = () => 7",
    "parseFloat = () => 7",
    "iot.clamp = () => 7",
    "iot = {clamp: () => 7}",
    "iot.value.x = 1",
    "leaked = 1",
    "this.leaked = 1",
    "this[0] = 1",
    "(function () { this.x = 1 })()",
    "var f = function () { return this }; f().x = 1",
    "Object.assign(this, {leaked: 1, x: 2})",
    "undefined = 1; NaN = 2; Infinity = 3",
    "Object = Array = String = null",
    "String.prototype.trim = () => 7",
    "Function.prototype.call = () => 7",
    "(() => 1).constructor.x = 1",
    "(function () {}).__proto__.x = 1",
    "Error.prototype.message = 'x'; Error.prepareStackTrace = () => 7",
    "TypeError.prototype.name = 'x'",
    "Map.prototype.get = () => 7; new Map().keys().__proto__.x = 1",
    "(s => s.raw.x = 1)`a`; (s => { s.x = 1 })`a`",
    "A.x = 1; A.channels.t['current-value'] = 9; A.channels.x = {}",
    "A.channels.__proto__.x = 1",
    "arguments.callee.x = 1; arguments[0] = 1",
    "(1).constructor.prototype.x = ''.constructor.prototype.x = 1",
    "(function* () {})().__proto__.__proto__.x = 1",
    "'a'.matchAll(/a/g).__proto__.x = 1",
    "(async () => 1)().constructor.prototype.x = 1",
]


@pytest.mark.parametrize("pollution", POLLUTIONS)
def test_the_next_program_sees_a_clean_realm(pool: SandboxPool, pollution: str) -> None:
    """In the same process: programs of a tenant share one, so the realm must not change.

    Not for the next composite of the tree, nor in the next tree, nor for another device.
    """
    clean = value(pool, CANARY, "clean")
    assert isinstance(clean, str)
    region = a_region(f"{pollution}; return 'done'", f"return String({CANARY})")
    polluted, unpolluted = Event(0, 1, UPDATE), Event(3, 2, UPDATE)

    found = told(pool, a_call_of(region, polluted, unpolluted, polluted._replace(timestamp=3)))

    assert [tree[-1] for tree in found] == [clean] * 3
    assert value(pool, CANARY) == clean


def test_the_canary_sees(pool: SandboxPool) -> None:
    """The test above can fail: within one program the realm's open places do show."""
    clean = value(pool, CANARY, "clean")

    assert value(pool, "(leaked = 1, " + CANARY + ")") != clean


@pytest.mark.parametrize(
    "expression",
    [
        "typeof globalThis", "typeof eval", "typeof Function", "typeof Proxy", "typeof Reflect",
        "typeof WebAssembly", "typeof SharedArrayBuffer", "typeof Atomics", "typeof WeakRef",
        "typeof FinalizationRegistry", "typeof Intl", "typeof Temporal", "typeof setTimeout",
        "typeof __timer_manager", "typeof Promise", "typeof Symbol", "typeof ArrayBuffer",
        "typeof Uint8Array", "typeof WeakMap", "typeof console", "typeof process",
        "typeof require", "typeof Deno", "typeof BigInt", "typeof escape", "typeof Iterator",
        "typeof Error.captureStackTrace", "typeof ({}).__proto__", "typeof RegExp.$1",
        "typeof Object.getOwnPropertyDescriptor", "typeof Object.setPrototypeOf",
        "typeof ({}).__defineGetter__", "typeof (/a/).compile", "typeof Array.fromAsync",
        "typeof gc", "typeof Object.getPrototypeOf", "typeof String.raw",
        "typeof (async()=>1)().then.constructor.constructor.x",
    ],
)  # fmt: skip
def test_what_is_not_there(pool: SandboxPool, expression: str) -> None:
    """A keep list: what V8 grows one day is not there either."""
    assert value(pool, expression) == "undefined"


@pytest.mark.parametrize(
    "code",
    [
        "[].map.constructor('return 1')()",
        "[].map['const' + 'ructor']('return 1')()",
        "(function*(){}).constructor('yield 1')()",
        "(async()=>1).constructor('return 1')()",
        "(async function*(){}).constructor('yield 1')()",
        "Array.constructor.constructor('return 1')()",
        "iot.value.constructor('return 1')()",
        "new (function(){}).constructor('return 1')",
        "\\u0065val('1')",
        "(0, eval)('1')",
        "iot.value.caller.arguments[0]",
        "(function f(){return f.caller.arguments})()[0]",
    ],
)
def test_no_code_from_text(pool: SandboxPool, code: str) -> None:
    """By no constructor, hidden or not."""
    outcome = value(pool, code)
    assert isinstance(outcome, Ended), outcome
    assert outcome.kind == "script-error"


def test_only_known_globals_exist(pool: SandboxPool) -> None:
    """The list is the contract of the realm, with any engine."""
    found = value(pool, "typeof this.Object === 'function' ? Object.keys(this).length : -1")
    assert found == "0"  # all that there is, is hidden from enumeration and fixed


DETERMINED = a_program(
    "return [Date.now(), new Date(), Date(), Math.random(), Math.random(),"
    "new Date(0).getTimezoneOffset(), (1234.5).toLocaleString(), new Date(0).toLocaleString(),"
    "new Date(0).toLocaleDateString('de'), 'I'.toLocaleLowerCase('tr'), ['b','a','C'].sort(),"
    "'a'.localeCompare('B'), [1.5].toLocaleString('de'), Math.sin(A.lastUpdate)].join('|')"
)


def test_equal_results_for_any_batch_and_process(pool: SandboxPool) -> None:
    """Clock, chance, zone and language come from the trigger, or do not come at all."""
    times = tuple(range(100, 400))
    call = a_call(DETERMINED, *times)
    together = [made for (made,) in grow_all(pool, call, "one").made]
    apart = one_by_one(pool, call, "two")
    halves = [a_call(DETERMINED, *times[:150]), a_call(DETERMINED, *times[150:])]
    half = [made for each in halves for (made,) in grow_all(pool, each, "three").made]

    assert len(together) == len(times)
    assert together == apart == half
    assert len({each.document for each in together}) == len(times)


@pytest.mark.parametrize(
    "code",
    [
        "'a'.repeat(2**28)", "'a'.padStart(2**28)", "'ab'.padEnd(1e9,'c')", "Array(1e8).length",
        "new Array(2**32-1).fill(0).length", "Array(2**32-2).concat([1]).indexOf(5)",
        "(()=>{var a=[];a[2**32-2]=1;return a.indexOf(5)})()",
        "[].reverse.call({length:2**53-1})", "[].lastIndexOf.call({length:2**53-1},1)",
        "[].copyWithin.call({length:2**53-1},0,5)", "[].indexOf.call({length:2**53-1},1)",
        "Array.from({length:1e8}).length", "Math.max(...Array(1e7).fill(1))",
        "[1].flatMap(p=>Array(1e8).fill(p))", "Math.max.apply(null,{length:1e8})",
        "[3,1,2].sort((p,q)=>Array(1e9).fill(1).length)[0]",
        "'a'.repeat(1e6).replaceAll('a','$&$&$&$&').length",
        "'a'.repeat(1e6).replace(/a/g,'bbbbbbbb').length", "'a'.repeat(1e6).split('').length",
        "Array(1e5).fill(1).concat([1]).length", "Array(1e5).join('0123456789ab').length",
        "[].constructor(1e9).length", "[].constructor.from({length:1e9}).length",
    ],
)  # fmt: skip
def test_too_much_work_is_the_scripts_error(pool: SandboxPool, code: str) -> None:
    """Where the engine would not look up, it is not let in: no process is lost."""
    process = process_of(pool)
    outcome = value(pool, code)

    assert isinstance(outcome, Ended)
    assert (outcome.kind, outcome.message[:10]) == ("script-error", "RangeError")
    assert process_of(pool) == process


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("Array(3).length + Array(1, 2).length + Array('3').length", "6"),
        ("new Array(2) instanceof Array && [] instanceof Array", "true"),
        ("[].constructor === Array && Array.isArray(Array(1)) && Array.of(7)[0] === 7", "true"),
        ("Array.from('abc', x => x + x)", "aa,bb,cc"),
        ("Array.from({length: 2}, (_, i) => i)", "0,1"),
        ("[1,2,3].lastIndexOf(3) + [1,2,3].indexOf(3)", "4"),
        ("[3,2,10].sort() + '|' + [3,2,10].sort((a, b) => a - b)", "10,2,3|2,3,10"),
        ("[[1],[2,[3]]].flat(2).concat(4, [5]).slice(1).reverse()", "5,4,3,2"),
        ("[1,2].join() + [1,2].join('-') + [null, 1]", "1,21-2,1"),
        ("'a-b-c'.split('-', 2) + 'a-b'.replace('-', '$&$&') + 'aa'.replaceAll('a', () => 'b')",
         "a,ba--bbb"),
        ("'ab'.repeat(2).padStart(6, '*').padEnd(8)", "**abab  "),
        ("Math.max.apply(null, [1, 3, 2]) + Math.min.call(null, 4, 5)", "7"),
        ("(f => f(1))(function(a, b) { return arguments.length + typeof b })", "1undefined"),
        ("new Date(0).toISOString() + Date.UTC(1970, 0, 2)", "1970-01-01T00:00:00.000Z86400000"),
        ("[...new Map([[1, 2]]).entries()] + [...new Set([1, 1])]", "1,21"),
        ("Object.entries({a: 1}) + Object.keys(Object.fromEntries([['b', 2]]))", "a,1b"),
        ("(() => { try { null.x } catch (e) { return e.name + (e instanceof TypeError) } })()",
         "TypeErrortrue"),
    ],
)  # fmt: skip
def test_guarded_built_ins_are_otherwise_the_same(
    pool: SandboxPool, code: str, expected: str
) -> None:
    """Nobody should notice them."""
    assert value(pool, code) == expected
