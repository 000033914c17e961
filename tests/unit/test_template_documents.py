"""Templates: values stay data wherever they stand."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.conditions import (
    GroupConditions,
    dynamic_groups,
    parse_conditions,
    with_members,
    without_members,
)
from servioticy.domain.documents.parameters import MAX_ELEMENTS, MAX_TEXT, complete
from servioticy.domain.documents.templates import (
    MAX_CODE_TEXT,
    MAX_PLACES,
    MAX_VALUES_BYTES,
    Template,
    parse_template,
)

PLACE = {"$parameter": "p"}


def a_template(document: Any, type_: str = "string") -> Template:
    return parse_template({"parameters": {"p": {"type": type_}}, "document": document})


def code(text: Any, value: Any, type_: str = "string") -> str:
    """The text of a channel's code with the value in it."""
    document = {"streams": {"s": {"channels": {"c": {"current-value": text}}}}}
    filled = a_template(document, type_).filled({"p": value})
    found: str = filled["streams"]["s"]["channels"]["c"]["current-value"]
    return found


def test_a_place_takes_the_value_and_a_text_its_text() -> None:
    template = a_template({"a": PLACE, "b": ["is {{p}}, {{p}}", {"c": PLACE}], "d": 1}, "number")

    assert template.filled({"p": 1.5}) == {"a": 1.5, "b": ["is 1.5, 1.5", {"c": 1.5}], "d": 1}


def test_a_value_is_not_looked_into() -> None:
    """Else whoever gives a value could name other parameters, or make places of his own."""
    assert a_template({"a": "{{p}}", "b": PLACE}).filled({"p": "{{p}}"}) == {
        "a": "{{p}}",
        "b": "{{p}}",
    }


def test_a_template_may_be_filled_again() -> None:
    template = a_template({"a": [PLACE]})

    assert template.filled({"p": "x"}) != template.filled({"p": "y"})


@pytest.mark.parametrize(
    ("value", "type_", "constant"),
    [
        (21.5, "number", "(21.5)"),
        (-1, "integer", "(-1)"),
        (True, "boolean", "(true)"),
        ("ab", "string", "String.fromCharCode(97,98)"),
        ("\U0001f600", "string", "String.fromCharCode(55357,56832)"),
        ("", "string", "String.fromCharCode()"),
        ([1, "a"], "array", "Array.of((1),String.fromCharCode(97))"),
    ],
)
def test_code_gets_constants(value: Any, type_: str, constant: str) -> None:
    assert code("1 - {{p}}", value, type_) == f"1 - {constant}"
    assert code(PLACE, value, type_) == constant


@given(value=st.text(max_size=MAX_CODE_TEXT))
def test_no_text_ends_what_it_stands_in(value: str) -> None:
    """Neither a string, a comment nor a template literal: it has none of their characters."""
    found = code('"{{p}}"', value.replace("\0", ""))

    assert re.fullmatch(r'"String\.fromCharCode\([0-9,]*\)"', found)


@pytest.mark.parametrize(
    "path",
    [
        ("streams", "s", "pre-filter"),
        ("streams", "s", "post-filter"),
        ("aliases", "x"),
    ],
)
def test_filters_and_aliases_are_code_too(path: tuple[str, ...]) -> None:
    document: Any = "{{p}}"
    for step in reversed(path):
        document = {step: document}
    filled: Any = a_template(document).filled({"p": "a"})
    for step in path:
        filled = filled[step]

    assert filled == "String.fromCharCode(97)"


def test_an_alias_in_a_list_is_code_too() -> None:
    filled = a_template({"aliases": [{"x": "{{p}}"}]}).filled({"p": "a"})

    assert filled == {"aliases": [{"x": "String.fromCharCode(97)"}]}


def test_large_values_are_refused_at_their_borders() -> None:
    assert len(code("{{p}}", "x" * MAX_CODE_TEXT)) > MAX_CODE_TEXT
    with pytest.raises(BadDocument, match="in code"):
        code("{{p}}", "x" * (MAX_CODE_TEXT + 1))
    many = a_template({"a": [PLACE] * (MAX_VALUES_BYTES // 1000)})
    assert many.filled({"p": "x" * 998})
    with pytest.raises(BadDocument, match="in all their places"):
        many.filled({"p": "x" * 1000})
    assert a_template({"a": [PLACE] * MAX_PLACES})
    with pytest.raises(BadDocument, match="places for parameters"):
        a_template({"a": [PLACE] * (MAX_PLACES + 1)})


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        ("string", ["", "x" * MAX_TEXT], [1, None, "x" * (MAX_TEXT + 1), "a\0", {}]),
        ("number", [1, -1.5, 2**53 - 1], [True, "1", 2**53, None]),
        ("integer", [1, -5], [1.5, True]),
        ("boolean", [True, False], [0, "true"]),
        (
            "array",
            [[], [1, "a", True], [1] * MAX_ELEMENTS],
            [[{}], [[]], [1] * (MAX_ELEMENTS + 1)],
        ),
    ],
)
def test_values_fit_their_types(type_: str, good: list[Any], bad: list[Any]) -> None:
    """No type holds an object, whose keys could be code."""
    declared = a_template({}, type_).parameters

    assert [complete(declared, {"p": each})["p"] for each in good] == good
    for each in bad:
        with pytest.raises(BadDocument) as error:
            complete(declared, {"p": each})
        assert error.value.pointer == "/p"


def test_choices_are_kept() -> None:
    declaration = {"type": "integer", "choices": [1, 2], "default": 2}
    declared = parse_template({"parameters": {"p": declaration}, "document": {}}).parameters

    assert complete(declared, {}) == {"p": 2}
    with pytest.raises(BadDocument, match="none of the choices"):
        complete(declared, {"p": 3})


def test_conditions_are_read_as_service_objects_are_listed() -> None:
    where = {"customFields.a.b": [1, "x", True], "name": "n", "template": "t", "public": True}

    assert parse_conditions({"where": where, "stream": "s"}) == GroupConditions(
        "s", (("a.b=1", "a.b=x", "a.b=true"),), ("n",), ("t",), others=True
    )


def test_members_are_written_beside_the_conditions_and_not_shown() -> None:
    document = {"groups": {"g": {"where": {"name": "n"}, "stream": "s"}, "h": {"soIds": ["a"]}}}
    stored = with_members(document, {"g": ["b"]})

    assert list(dynamic_groups(document)) == ["g"]
    assert stored["groups"]["g"]["soIds"] == ["b"]
    assert without_members(stored) == document


@pytest.mark.parametrize("type_", ["text", "", None, 5, [], {}])
def test_a_parameter_has_one_of_the_types(type_: Any) -> None:
    with pytest.raises(BadDocument) as error:
        parse_template({"parameters": {"p": {"type": type_}}, "document": {"streams": {}}})

    assert error.value.pointer == "/parameters/p/type"
