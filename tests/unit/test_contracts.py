"""The contracts stand alone: what they refer to is in them, and their examples fit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from schemas import contracts

CONTRACTS = {"openapi": contracts.openapi(), "asyncapi": contracts.asyncapi()}
PAGE = (Path(__file__).parents[2] / "docs" / "rest.md").read_text("utf-8")


def references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from references(each)
    elif isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from references(each)


def found(document: Any, reference: str) -> Any:
    for step in reference.removeprefix("#/").split("/"):
        document = document[step]
    return document


@pytest.mark.parametrize("name", CONTRACTS)
def test_all_that_a_contract_refers_to_is_in_it(name: str) -> None:
    named = set(references(CONTRACTS[name]))

    assert named
    for each in named:
        assert each.startswith("#/"), each
        found(CONTRACTS[name], each)


@pytest.mark.parametrize("name", CONTRACTS)
def test_schemas_of_a_contract_are_schemas(name: str) -> None:
    for schema in CONTRACTS[name]["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_nothing_of_openapi_is_there_without_being_used() -> None:
    document = contracts.openapi()
    used = set(references(document))
    for kind in ("parameters", "headers", "responses", "schemas"):
        for each in document["components"][kind]:
            assert f"#/components/{kind}/{each}" in used, each


def test_examples_of_messages_fit() -> None:
    document = contracts.asyncapi()
    for message in document["components"]["messages"].values():
        schema = {"components": document["components"], "allOf": [message["payload"]["schema"]]}
        for example in message["examples"]:
            jsonschema.Draft202012Validator(schema).validate(example["payload"])


def test_the_codes_of_sockets_are_those_of_the_page() -> None:
    told = contracts.asyncapi()["channels"]["live"]["description"]

    assert set(re.findall(r"^\| (1\d\d\d) \|", PAGE, re.MULTILINE)) == set(
        re.findall(r"\b1\d\d\d\b", told)
    )
