"""A condition on which windows come out, as documents have it."""

from __future__ import annotations

from typing import Any

import pytest
from bad_documents import refusal, resolved

from sandbox.program import HOLDS, ChannelCode
from sandbox.text import argument_names
from servioticy.domain.documents import BadDocument, parse_service_object
from servioticy.domain.documents.asked_of_windows import asked_of_windows
from servioticy.domain.documents.templates import parse_template
from servioticy.domain.scripts import programs_of
from servioticy.domain.windowed import WindowsOf, parts
from servioticy.domain.windows.model import Window

WHEN = "/streams/c/window/emit/when"
WINDOW = {"type": "tumbling", "size": "20m"}


def document(when: Any, code: str = "function(a){return a.count}", **more: Any) -> dict[str, Any]:
    number = {"channels": {"v": {"type": "number"}}}
    c = {
        "channels": {"m": {"type": "number", "current-value": code}},
        "window": WINDOW | {"emit": {"when": when}} | more,
    }
    return {"version": "0.2.0", "streams": {"a": number, "b": number, "c": c}}


def windows_of(content: dict[str, Any]) -> WindowsOf:
    windows = parts(parse_service_object(content, "so", argument_names).streams[-1])[0]
    assert windows.composite is not None
    operator = windows.composite.operator
    assert isinstance(operator, WindowsOf)
    return operator


def test_a_condition_is_a_program_of_its_own_over_the_windows() -> None:
    content = document("a.count >= 100")
    stream = parse_service_object(content, "so", argument_names).streams[-1]
    condition, result = programs_of(stream)
    assert condition.channels == (ChannelCode("when", "a.count >= 100", HOLDS),)
    assert condition.arguments == result.arguments == ("a",)
    assert windows_of(content).window == Window(
        "tumbling",
        windows_of(content).window.size,  # type: ignore[union-attr]
        early=0,
        when="a.count >= 100",
    )


def test_what_only_the_condition_asks_for_is_kept() -> None:
    window = windows_of(document("a.quantile('v', 0.5) > a.by('room').attic.max('v')")).window
    assert isinstance(window, Window)
    assert window.uses.sketches
    assert window.uses.by == ("room",)


def test_windows_stay_open_whatever_the_condition() -> None:
    assert windows_of(document("a.count > 1")).cut == windows_of(document("a.count > 2")).cut


def test_expressions_refer_to_windows() -> None:
    content = document("{$b.count} > {$a.count}", code="{$a.count}")
    content["version"] = "0.1.0"
    operator = windows_of(content)
    assert isinstance(operator.window, Window)
    assert operator.window.when == "$1 > $0"
    assert operator.inputs == (("so/a",), ("so/b",)), "what it names is read"
    (condition, _result) = programs_of(
        parse_service_object(content, "so", argument_names).streams[-1]
    )
    assert [(each.name, each.argument, each.path) for each in condition.bindings] == [
        ("$0", 0, ("count",)),
        ("$1", 1, ("count",)),
    ]


@pytest.mark.parametrize(
    ("when", "code", "words"),
    [
        (7, "wrong-type", "has to be text"),
        (None, "wrong-type", "has to be text"),
        ("a" * 70_000, "too-much", "65536 bytes"),
    ],
)
def test_what_is_no_condition_is_refused(when: Any, code: str, words: str) -> None:
    content = document(when)
    error = refusal(content)
    assert error is not None
    assert (error.code, error.pointer) == (code, WHEN)
    assert words in str(error)
    resolved(error.pointer, content)


@pytest.mark.parametrize(
    ("when", "code"),
    [
        ("{$result.count} > 1", "bad-reference"),
        ("{$x.count} > 1", "unknown-source"),
        ("{$a.count[} > 1", "bad-reference"),
    ],
)
def test_a_reference_in_vain_is_told_with_its_place(when: str, code: str) -> None:
    content = document(when, code="{$a.count}")
    content["version"] = "0.1.0"
    error = refusal(content)
    assert error is not None
    assert (error.code, error.pointer) == (code, WHEN)


def test_what_windows_do_not_have_is_told() -> None:
    definition = parse_service_object(document("a.average('v') > 1"), "so", argument_names)
    assert any("a.average" in each for each in asked_of_windows(definition))


@pytest.mark.parametrize(
    ("place", "stays"),
    [
        (("window", "emit", "when"), False),
        (("fold",), False),
        (("actions", 0, "if"), False),
        (("actions", 0, "parameters", "when"), True),
    ],
)
def test_a_templates_values_are_no_code(place: tuple[Any, ...], stays: bool) -> None:
    """A text in code is written as a constant; elsewhere it is data and stays as it is."""
    stream: dict[str, Any] = {"actions": [{"parameters": {}}], "window": {"emit": {}}}
    inner: Any = stream
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = "x == {{limit}}"
    content = {
        "parameters": {"limit": {"type": "string"}},
        "document": {"streams": {"c": stream}},
    }
    filled: Any = parse_template(content).filled({"limit": "1 || true"})["streams"]["c"]
    for step in place:
        filled = filled[step]
    assert ("1 || true" in filled) == stays
    assert stays or filled.startswith("x == String.fromCharCode(49,32,")


def test_a_condition_is_refused_where_the_window_has_no_emit() -> None:
    content = document("a.count > 1")
    content["streams"]["c"]["window"] = {"type": "count", "size": 5, "emit": {"when": "1"}}
    with pytest.raises(BadDocument, match="a count window has no 'emit'"):
        parse_service_object(content, "so", argument_names)
