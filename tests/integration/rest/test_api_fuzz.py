"""Requests made out of the OpenAPI document, some of them against it: the answers fit it.

A few for each operation here; `make fuzz` sends thousands.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
import schemathesis
from api_builders import Served
from contract_world import World, a_world
from examples import examples
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from schemas import contracts

CALLS = int(os.environ.get("CALLS", "0")) or examples(20)
TAKES_ANYTHING = {
    *("POST /updates", "POST /{so}/streams/{s}/updates"),  # refused part by part
    "PUT /{so}/actuations/{actuation}",  # whatever the device has to say
}
KNOWN = 3
"""Of four requests, so many go to what is there."""


def bad_requests_are_refused(context: Any, response: Any, case: Any) -> Any:
    """Whatever the status of the refusal is: another part of the request may be wrong, too."""
    if response.status_code >= 400 or case.operation.label in TAKES_ANYTHING:
        return None
    return negative_data_rejection(context, response, case)


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    bad_requests_are_refused,
]

load_all_checks()
described = schemathesis.openapi.from_dict(contracts.openapi())


@schemathesis.serializer(
    "application/x-ndjson", "application/ndjson", "application/jsonl", "text/csv"
)
def _lines(_context: Any, value: Any) -> bytes:
    """Text as it is; where it has been made something else, as its JSON."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode(errors="surrogatepass")


@schemathesis.serializer("application/gzip")
def _archive(_context: Any, value: Any) -> bytes:
    """Whatever has been made in the place of an archive."""
    return str(value).encode(errors="surrogatepass")


@pytest.fixture
def world(served: Served) -> World:
    return a_world(served)


@described.parametrize()
@settings(
    max_examples=CALLS,
    deadline=None,
    # The same requests wherever the same modules are loaded, of which Hypothesis takes constants;
    # `make fuzz` makes new ones, and looks for trouble.
    derandomize="CALLS" not in os.environ,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_those_of_the_document(case: Any, served: Served, world: World) -> None:
    """No request makes us fail or gets what the document does not tell; bad ones are refused."""
    go_to_what_is_there(case, world)
    token = {"Authorization": world.tenant.token}
    case.operation.schema.app = served.app
    case.call_and_validate(app=served.app, headers=token, checks=CHECKS)


def go_to_what_is_there(case: Any, world: World) -> None:
    """Most of the time: made-up ids would only be met by 404."""
    for name, value in list((case.path_parameters or {}).items()):
        if name != "n" and sum(map(ord, str(value))) % (KNOWN + 1):
            case.path_parameters[name] = world.names[name]


def test_every_operation_is_tried() -> None:
    """None is left out for want of a schema that requests could be made of."""
    found = {each.ok().label for each in described.get_all_operations()}

    assert found == {
        f"{method} {path}" for method, path in contracts.operations(contracts.openapi())
    }
