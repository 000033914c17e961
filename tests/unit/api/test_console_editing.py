"""What is edited is turned into the document and back, and nothing of it is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.console.editing import NoDocument, line_and_column, read, write

CODE = "function(air) {\n  return `${iot.value(air)}` > 30 && /\\d\"/.test('x');\n}"
DOCUMENT = {
    "name": "cellar",
    "version": "0.2.0",
    "streams": {
        "air": {"channels": {"celsius": {"type": "number", "unit": "C"}}},
        "alarm": {"channels": {"hot": {"type": "boolean", "current-value": CODE}}},
    },
}
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
    st.text('`\n \t\r"\\a{}', max_size=30),
    st.text("`\n", max_size=40),
)
KEYS = st.one_of(st.sampled_from(["current-value", "if", "pre-filter"]), TEXTS)
VALUES = st.recursive(
    st.one_of(
        TEXTS,
        st.booleans(),
        st.none(),
        st.integers(-(2**53), 2**53),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=25,
)


def same(one: Any, other: Any) -> bool:
    return json.dumps(one) == json.dumps(other)


@given(st.dictionaries(KEYS, VALUES, max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_written_and_read_a_document_is_the_same(document: dict[str, Any], end: str) -> None:
    """Order, kinds of numbers and all; forms send other line ends."""
    text = write(document)

    assert same(read(text.replace("\n", end)).document, document)
    assert write(read(text).document) == text


@given(VALUES)
def test_all_json_is_understood(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=3, ensure_ascii=False)):
        assert same(read(text).document, value)


@given(st.text('{}[]":,`\n 0a\\-.e1tru', max_size=40))
def test_whatever_is_typed_is_a_document_or_a_place(text: str) -> None:
    try:
        found = read(text).document
    except NoDocument as error:
        assert 0 <= error.at <= len(text)
        with pytest.raises(ValueError, match=""):
            json.loads(text)
    else:
        assert "`" in text or same(found, json.loads(text))


def test_code_stands_in_lines_of_its_own_and_what_is_short_in_one() -> None:
    assert write(DOCUMENT) == (
        '{\n  "name": "cellar",\n  "version": "0.2.0",\n  "streams": {\n'
        '    "air": {"channels": {"celsius": {"type": "number", "unit": "C"}}},\n'
        '    "alarm": {\n      "channels": {\n        "hot": {\n          "type": "boolean",\n'
        f'          "current-value": ``\n{CODE}\n``\n        }}\n      }}\n    }}\n  }}\n}}\n'
    )


def test_it_is_known_where_each_value_stands() -> None:
    text = write(DOCUMENT)
    found = read(text)
    place = found.places["streams", "alarm", "channels", "hot", "current-value"]

    assert line_and_column(text, place) == (10, 28)
    assert text[place:].startswith(f"``\n{CODE}")
    assert place in found.raw
    assert line_and_column(text, found.places["name",]) == (2, 11)


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        ("", "a value is missing", (1, 1)),
        ('{"a": 1,}', 'a name in quotes ("..") is missing', (1, 9)),
        ('{"a" 1}', "a colon is missing", (1, 6)),
        ('{\n "a": 1\n "b": 2}', 'a comma or "}" is missing', (3, 2)),
        ('{"a": 1} x', "nothing may follow", (1, 10)),
        ('{"a": 1, "a": 2}', '"a" is here a second time', (1, 10)),
        ('{"a": "b\n"}', "does not end in its line", (1, 7)),
        ('{"a": "\\x"}', "a backslash", (1, 7)),
        ('{"a": `b`}', "begins in a new line", (1, 7)),
        ('{"a": ``\nb\n`}', "(``) is missing", (1, 7)),
        ('{"a": ' + "`" * 21 + "\n}", "more than 20 backticks", (1, 7)),
        ('{"a": 1e999}', "too large", (1, 7)),
        ('{"a": -}', "no number", (1, 7)),
        ('{"a": maybe}', "a value is missing", (1, 7)),
        ("[" * 300, "nested too deeply", (1, 202)),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    text: str, reason: str, place: tuple[int, int]
) -> None:
    with pytest.raises(NoDocument) as told:
        read(text)

    assert reason in told.value.reason
    assert line_and_column(text, told.value.at) == place


def test_what_is_very_deep_stands_where_that_does_that_it_is_in() -> None:
    text = '{"a":' * 40 + "1" + "}" * 40
    found = read(text)

    assert len(found.places) == 13
    assert found.places[("a",) * 12] == 60
