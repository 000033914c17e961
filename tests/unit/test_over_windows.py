"""Streams over windows: what a document may say beside `window`, and as what it is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from bad_documents import refusal, resolved

from sandbox.text import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.documents.over_windows import MAX_ASPECTS, MAX_INPUTS
from servioticy.domain.graph import Graph
from servioticy.domain.model import Input, InputRef, ServiceObject, StreamRef, WindowRef
from servioticy.domain.windowed import WINDOWS, WindowsOf, as_one, parts

TUMBLING = {"type": "tumbling", "size": "20m"}


def document(code: str, window: Any = TUMBLING, **more: Any) -> dict[str, Any]:
    return {
        "version": "0.2.0",
        "streams": {
            "a": {"channels": {"v": {"type": "number"}}},
            "b": {"channels": {"v": {"type": "number"}}},
            "c": {
                "channels": {"m": {"type": "number", "current-value": code}},
                "window": window,
                **more,
            },
        },
    }


def test_it_is_computed_as_its_windows_and_what_reads_them() -> None:
    definition = parse_service_object(
        document("function(b, a){return a.mean('v')}"), "so", argument_names
    )
    (c,) = [each for each in definition.streams if each.composite]
    windows, result = parts(c)
    assert c.composite is not None and windows.composite is not None
    assert c.composite.own is None, "its own output is not read"

    assert windows.ref == WindowRef("so", "c") != StreamRef("so", "c")
    assert windows.composite.inputs == c.composite.inputs
    assert windows.composite.evaluator == WINDOWS
    assert windows.composite.operator == WindowsOf(c.composite.window, (("so/b",), ("so/a",)))

    ref = WindowRef("so", "c")
    assert result.ref == c.ref
    assert result.composite is not None
    assert result.composite.inputs == (Input("b", (ref,)), Input("a", (ref,)))
    assert result.composite.windowed
    assert parts(result) == (result,)


def test_it_is_known_which_of_its_streams_are_other_tenants() -> None:
    """That is no part of what windows are told by which are open."""
    definition = parse_service_object(
        document("function(b, a){return a.mean('v')}"), "so", argument_names
    )
    (c,) = [each for each in definition.streams if each.composite]
    assert c.composite is not None
    first, second = c.composite.inputs
    theirs = replace(second, members=(InputRef(StreamRef("x", "d"), 4), *second.members))
    windows, _ = parts(replace(c, composite=replace(c.composite, inputs=(first, theirs))))
    assert windows.composite is not None
    operator = windows.composite.operator
    assert isinstance(operator, WindowsOf)
    assert operator.outside == {"x/d"}
    assert operator.cut == replace(operator, outside=frozenset()).cut


def test_expressions_read_windows_too() -> None:
    content = document("{$a.mean.v} * 2")
    content.pop("version")
    definition = parse_service_object(content, "so", argument_names)
    (c,) = [each for each in definition.streams if each.composite]
    assert c.composite is not None
    assert [each.name for each in c.composite.inputs] == ["a"]


@pytest.mark.parametrize("option", ["diamonds", "staleness", "missing"])
def test_options_that_have_no_meaning_are_refused(option: str) -> None:
    value = {"diamonds": "settle", "staleness": "input", "missing": "skip"}[option]
    content = document("function(a){return a.mean('v')}", **{option: value})
    error = refusal(content)
    assert error is not None
    assert (error.code, error.pointer) == ("bad-window", f"/streams/c/{option}")
    resolved(error.pointer, content)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("function(a, c){return 1}", "cannot read 'c', its own output"),
        ("function(a, $input){return 1}", "has no $input: name an input instead"),
        ("function(){return 1}", "code beside it has to read an input"),
    ],
)
def test_code_that_is_not_of_windows_is_refused(code: str, words: str) -> None:
    error = refusal(document(code))
    assert error is not None
    assert (error.code, error.pointer) == ("bad-window", "/streams/c/window")
    assert words in str(error)


def test_a_simple_stream_has_no_window() -> None:
    content = document("")
    content["streams"]["a"]["window"] = TUMBLING
    error = refusal(content)
    assert error is not None
    assert (error.code, error.pointer) == ("bad-window", "/streams/a/window")


def test_a_window_of_null_is_none() -> None:
    definition = parse_service_object(
        document("function(a){return 1}", None), "so", argument_names
    )
    assert all(len(parts(each)) == 1 for each in definition.streams)


@pytest.mark.parametrize(("inputs", "is_refused"), [(MAX_INPUTS, False), (MAX_INPUTS + 1, True)])
def test_inputs_are_bounded(inputs: int, is_refused: bool) -> None:
    names = [f"s{number}" for number in range(inputs)]
    content = document(f"function({', '.join(names)}){{return 1}}")
    content["streams"] |= {name: {"channels": {"v": {"type": "number"}}} for name in names}
    error = refusal(content)
    assert (error is not None) == is_refused
    assert error is None or (error.code, error.pointer) == ("too-much", "/streams/c/window")


@pytest.mark.parametrize(("inputs", "is_refused"), [(MAX_ASPECTS // 4, False), (3, True)])
def test_what_an_update_changes_is_bounded(inputs: int, is_refused: bool) -> None:
    names = [f"s{number}" for number in range(inputs)]
    by = "".join(f"{names[0]}.by('{each}');" for each in "wxyz")
    content = document(f"function({', '.join(names)}){{{by}return 1}}")
    content["streams"] |= {name: {"channels": {"v": {"type": "number"}}} for name in names}
    assert (refusal(content) is not None) == is_refused


def test_who_tells_who_reads_whom_sees_one_stream() -> None:
    content = document("function(a){return a.mean('v')}")
    definition = parse_service_object(content, "so", argument_names)
    whole = ServiceObject(definition, 1, 1, 1, {"a": 1, "b": 2, "c": 3})
    computed, told = Graph([whole]), Graph([as_one(whole)])
    assert [each.composite for each in computed.wakes(StreamRef("so", "a"))] == [
        WindowRef("so", "c")
    ]
    assert [each.composite for each in told.wakes(StreamRef("so", "a"))] == [StreamRef("so", "c")]
    assert computed.stream(WindowRef("so", "c")).feeds is computed.stream(StreamRef("so", "c"))
