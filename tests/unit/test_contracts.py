"""The contracts stand alone: what they refer to is in them, and their examples fit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from delivery.actuations import ways
from delivery.callbacks.requests import CallbackForm, outgoing
from delivery.feeds.deliveries import Delivery
from schemas import contracts
from servioticy.domain.model import LastUpdate, StreamRef
from servioticy.ports.actuations import Actuation

CONTRACTS = {
    "openapi": contracts.openapi(),
    "delivery": contracts.delivery(),
    "console": contracts.console(),
    "asyncapi": contracts.asyncapi(),
}
PAGE = (Path(__file__).parents[2] / "docs" / "rest" / "live.md").read_text("utf-8")


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


@pytest.mark.parametrize("name", ["openapi", "delivery", "console"])
def test_nothing_of_openapi_is_there_without_being_used(name: str) -> None:
    document = CONTRACTS[name]
    used = set(references(document))
    for kind in ("parameters", "headers", "responses", "schemas"):
        for each in document["components"][kind]:
            assert f"#/components/{kind}/{each}" in used, each


def test_examples_of_messages_fit() -> None:
    for message in contracts.asyncapi()["components"]["messages"].values():
        for example in message["examples"]:
            for part in ("payload", "headers"):
                assert (part in message) is (part in example)
                if part in message:
                    fit(example[part], message[part]["schema"])


@pytest.mark.parametrize(
    ("form", "name"),
    [
        ("plain", "plainCallback"),
        ("cloudevents", "cloudEvent"),
        ("cloudevents-binary", "cloudEventBinary"),
    ],
)
@pytest.mark.parametrize("count", [0, 2])
def test_callbacks_fit_their_message(form: str, name: str, count: int) -> None:
    """The request itself that delivery makes of an update."""
    update = LastUpdate(5, b'{"channels":{"t":{"current-value":4.5}},"lastUpdate":5}')
    delivery = Delivery(StreamRef("1401819725000a", "a s\u00e9"), update, None)
    secrets = ({"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},) * count
    wanted = CallbackForm("sub", "http://example.org/", form, {}, secrets)
    request = wanted.request(outgoing(delivery), 1_500_000_000)

    message = contracts.asyncapi()["components"]["messages"][name]
    fit(json.loads(request.body), message["payload"]["schema"])
    fit(dict(request.headers), message["headers"]["schema"])
    assert request.headers["Content-Type"] == message["contentType"]
    assert set(request.headers) - {"Content-Type"} <= set(
        message["headers"]["schema"]["properties"]
    )


def test_what_a_device_gets_fits_its_message() -> None:
    """The frame of a socket, as delivery makes it."""
    actuation = Actuation("0" * 32, "delay=5", b'{"name":"reboot","timeout":5}', 1, 5_001)
    frame = {"id": "actuations", "actuation": json.loads(ways.message(actuation))}

    fit(frame, contracts.asyncapi()["components"]["messages"]["actuation"]["payload"]["schema"])


def fit(value: Any, schema: dict[str, Any]) -> None:
    document = contracts.asyncapi()
    whole = {"components": document["components"], "allOf": [schema]}
    jsonschema.Draft202012Validator(whole).validate(value)


def test_the_codes_of_sockets_are_those_of_the_page() -> None:
    told = contracts.asyncapi()["channels"]["live"]["description"]

    assert set(re.findall(r"^\| (1\d\d\d) \|", PAGE, re.MULTILINE)) == set(
        re.findall(r"\b1\d\d\d\b", told)
    )
