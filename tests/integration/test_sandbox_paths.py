"""Where paths lead, in the real engines: the library that parses them is the oracle."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from examples import examples
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonpath_ng.ext.parser import parse as parse_jsonpath
from sandbox_pools import a_pool
from sandbox_trees import VALUE, a_call, an_event, once, result

from sandbox import RESULT, Binding, ChannelCode, Program, SandboxPool
from sandbox.trees import Ended, Event, Last
from servioticy.domain import references
from servioticy.domain.model import Reference


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    pool = a_pool(engine=request.param)
    yield pool
    pool.close()


FOUND = {
    "channels": {"x": {"current-value": 5, "unit": "C"}, "l": {"current-value": [1, 2]}},
    "lastUpdate": 7,
    "text": "abc",
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", FOUND),
        (".", FOUND),
        (" ", FOUND),
        (".lastUpdate", 7),
        (".channels.x.current-value", 5),
        (".channels.x['current-value']", 5),
        ("['channels']['x'][ 'current-value' ]", 5),
        ('["channels"].x.unit', "C"),
        (".channels.l.current-value[1]", 2),
        (".channels.l.current-value[9]", None),
        (".channels.nothing.current-value", None),
        (".lastUpdate.deeper", None),
        (".text[0]", None),
        (".channels[0]", None),
        (".channels.*.unit", ["C"]),
        ("..unit", ["C"]),
        (".channels.*.current-value", [5, [1, 2]]),
        (".channels.*.nothing", None),
        (".channels[?(@.unit == 'C')].current-value", [5]),
        (".channels[?(@.current-value > 4)].unit", ["C"]),
    ],
)
def test_a_path_finds_its_value(pool: SandboxPool, path: str, value: Any) -> None:
    assert followed(pool, references.parse("A", path), FOUND) == value
    assert followed(pool, references.parse("A", path), None) is None


def followed(pool: SandboxPool, reference: Reference, document: Any) -> Any:
    """What the reference finds in an input; None: there is no update yet."""
    program = Program(
        reference.expression,
        "expression",
        ("A", "B"),
        (ChannelCode("t", "JSON.stringify($0)", "string"),),
        bindings=(Binding("$0", 0, reference.path),),
    )
    lasts = [] if document is None else [Last(0, 1, json.dumps(document).encode())]
    return json.loads(result(once(pool, a_call(program, an_event(node=1), lasts=lasts))))


def test_a_path_that_finds_ever_more_ends_as_its_script_would(pool: SandboxPool) -> None:
    """Each selector doubles what the one before found: 2 to the 150th in a small update."""
    deep: Any = 1
    for _ in range(150):
        deep = [deep]
    reference = references.parse("A", "['z']" + "[0,0]" * 150)
    program = Program(
        "ever more",
        "expression",
        ("A",),
        (ChannelCode("t", "$0.length", "number"),),
        bindings=(Binding("$0", 0, reference.path),),
    )
    call = a_call(program, Event(0, 1, json.dumps({"z": deep}).encode()))
    outcome = once(pool, call, "another tenant")
    assert isinstance(outcome, Ended)
    assert outcome.kind in {"timeout", "oom"}


names = st.sampled_from(("a", "b", "current-value", "length", "__proto__", "7"))
numbers = st.integers(-4, 4).map(str)
bounds = st.just("") | numbers
steps_of_paths = (
    names.map(lambda name: f"['{name}']")
    | st.lists(names, min_size=2, max_size=3).map(
        lambda each: "[" + ",".join(f"'{name}'" for name in each) + "]"
    )
    | st.lists(numbers, min_size=1, max_size=2).map(lambda each: f"[{','.join(each)}]")
    | st.tuples(bounds, bounds, bounds).map(lambda each: f"[{':'.join(each)}]")
    | st.sampled_from([".*", "[*]", ".`this`", ".$"])
)
operands = st.tuples(st.sampled_from("@@@$"), st.lists(steps_of_paths, max_size=2)).map(
    lambda each: each[0] + "".join(each[1])
)
constants = st.sampled_from(["0", "1", "5", "-1.5", "null", "true", "'x'", "'yz'"])
tests = st.deferred(
    lambda: (
        operands
        | operands.map("!".__add__)
        | st.tuples(
            operands, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), operands | constants
        ).map("".join)
        | st.tuples(tests, st.sampled_from([" && ", " || "]), tests).map("".join)
    )
)
paths = st.lists(
    st.tuples(
        st.sampled_from(["", "", ".."]), steps_of_paths | tests.map(lambda each: f"[?{each}]")
    ).map(lambda each: each[0] + each[1].removeprefix(".") if each[0] else each[1]),
    min_size=1,
    max_size=4,
).map("".join)
documents = st.recursive(
    st.integers(0, 9) | st.none() | st.text("xyz", max_size=2),
    lambda inside: st.lists(inside, max_size=5) | st.dictionaries(names, inside, max_size=4),
    max_leaves=12,
)


def in_javascripts_order(value: Any) -> Any:
    """Keys that are numbers come first, whatever the order of the document."""
    if isinstance(value, list):
        return [in_javascripts_order(each) for each in value]
    if not isinstance(value, dict):
        return value
    ordered = sorted(value.items(), key=lambda pair: not pair[0].isdigit())
    return {key: in_javascripts_order(each) for key, each in ordered}


@settings(
    max_examples=examples(400),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(document=documents, path=paths)
def test_selectors_find_what_jsonpath_finds(pool: SandboxPool, document: Any, path: str) -> None:
    """The library that follows paths outside is the oracle for those followed inside."""
    try:
        reference = references.parse("A", path)
    except references.BadReference:
        assume(False)
    assume(document is not None and not reference.plain)
    found = parse_jsonpath(reference.expression).find(in_javascripts_order(document))
    expected = [each.value for each in found] or None
    assert followed(pool, reference, document) == expected


def test_a_post_filter_may_look_everywhere_in_the_result(pool: SandboxPool) -> None:
    values = ("names", "current-value")
    program = Program(
        "everywhere",
        "expression",
        ("A",),
        (ChannelCode("t", "$0", "number"), ChannelCode("u", "$0*2", "number")),
        post_filter="$1.length===2 && $1[1]>8 && $2===null",
        bindings=(
            Binding("$0", 0, VALUE),
            Binding("$1", RESULT, (("below", (values,)),)),
            Binding("$2", RESULT, (("names", "channels"), ("names", "nothing"))),
        ),
    )
    assert result(once(pool, a_call(program, an_event(4)))) == "filtered"
    assert result(once(pool, a_call(program, an_event(5)))) == 5
