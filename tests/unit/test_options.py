"""What a composite stream may choose: parser, schema and pages follow from one declaration."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from msgspec.structs import fields

from sandbox import argument_names
from servioticy.domain.documents import BadDocument, parse_service_object
from servioticy.domain.documents.options import words_of
from servioticy.domain.options import Options

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "schemas" / "service-object.json").read_text())
DECLARED: dict[str, Any] = msgspec.json.schema_components((Options,))[1]["Options"]["properties"]
"""Each option as JSON Schema has it, made from the declaration."""
VALUES = [
    *(word for each in DECLARED.values() for word in each.get("enum", ())),
    *("", "last", None, True, 0, 1, -1, 2**63, 1.5, ["first"], {}),
]


def document(**fields: Any) -> dict[str, Any]:
    channels = {"v": {"type": "number", "current-value": "function(a){return 1}"}}
    streams = {"a": {"channels": {"v": {"type": "number"}}}, "b": {"channels": channels, **fields}}
    return {"version": "0.2.0", "streams": streams}


def options_of(**fields: Any) -> Options:
    stream = parse_service_object(document(**fields), "so", argument_names).stream("b")
    assert stream is not None
    assert stream.composite is not None
    return stream.composite.options


def test_without_a_choice_the_rules_are_the_papers() -> None:
    assert options_of() == Options("first", "output", "null")


def test_a_document_may_choose() -> None:
    chosen = options_of(diamonds="settle", staleness="input", missing="skip")

    assert chosen == Options("settle", "input", "skip")


@pytest.mark.parametrize("name", ["diamonds", "staleness", "missing"])
@pytest.mark.parametrize("word", ["", "last", None, 1, ["first"], {}])
def test_a_word_that_is_no_choice_is_refused(name: str, word: Any) -> None:
    """The message names the place and the choices there are."""
    with pytest.raises(BadDocument, match=f"stream b: {name} has to be one of '") as refused:
        options_of(**{name: word})

    assert (refused.value.code, refused.value.pointer) == ("no-choice", f"/streams/b/{name}")


@pytest.mark.parametrize("name", DECLARED)
def test_the_schema_has_each_option_as_it_is_declared(name: str) -> None:
    assert SCHEMA["$defs"]["options"]["properties"].keys() == DECLARED.keys()
    assert SCHEMA["$defs"]["options"]["properties"][name] == DECLARED[name]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("name", DECLARED)
def test_schema_and_parser_accept_the_same_values(name: str, value: Any) -> None:
    try:
        accepted = msgspec.to_builtins(options_of(**{name: value}))[name] == value
    except BadDocument:
        accepted = False

    validator = jsonschema.Draft202012Validator(SCHEMA)
    assert validator.is_valid(document(**{name: value})) is accepted


def test_the_page_has_each_option_as_it_is_declared() -> None:
    """Its words, the default first, and its meaning."""
    page = (ROOT / "docs" / "document-format.md").read_text()
    _, _, table = page.partition("## What a composite stream may choose")
    table = table.partition("\n## ")[0]
    rows = re.findall(r"^\| `(.*?)` \| (.*?) \| (.*) \|$", table, re.MULTILINE)

    assert [(name, meaning) for name, _, meaning in rows] == [
        (name, each["description"]) for name, each in DECLARED.items()
    ]
    for (name, choices, _), field in zip(rows, fields(Options), strict=True):
        words = words_of(field.type)
        assert choices.startswith(", ".join(f'`"{word}"`' for word in words))
        assert words == () or words[0] == DECLARED[name]["default"]
