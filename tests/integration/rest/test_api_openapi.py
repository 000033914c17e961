"""The OpenAPI document, the routes and docs/rest.md say the same, and its examples are true."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from api_builders import Served
from application_builders import a_package
from contract_world import (
    ARCHIVE,
    OPENAPI,
    OPERATIONS,
    World,
    a_world,
    examples_with_types,
    request_examples,
    resolved,
    response,
    validate,
)
from rest_page import PAGE, called, rights_on_the_page, statuses_on_the_page
from werkzeug.test import TestResponse

from api.app import SERVICES
from api.http.authentication import right_to
from monitoring.applications import package, repository

REQUESTS = [
    pytest.param(method, path, name, id=f"{method} {path} {name}")
    for method, path in OPERATIONS
    for name in request_examples(method, path) or {"": None}
]


@pytest.fixture
def world(served: Served, tmp_path: Path) -> World:
    folder = a_package(tmp_path / "package")
    data = served.app.extensions[SERVICES].settings.data_path
    repository.register(data, package.read(folder), folder)
    return a_world(served)


def test_the_document_has_every_route_with_its_right(served: Served) -> None:
    """What the routes say themselves; docs/rest.md is held to them by other tests."""
    routes = {
        (method, called(rule)): right.value if (right := right_to(view)) else "none"
        for rule in served.app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"OPTIONS", "HEAD"}
        if (view := served.app.view_functions[rule.endpoint])
    }

    assert {route: each["x-right"] for route, each in OPERATIONS.items()} == {
        (method, one_name(path)): right for (method, path), right in routes.items()
    }
    assert routes == rights_on_the_page()


def one_name(path: str) -> str:
    """The path as OpenAPI has it, where paths that differ in a name only are one."""
    return re.sub(r"/actuations/{\w+}", "/actuations/{actuation}", path)


def test_only_what_needs_no_token_says_so() -> None:
    for route, each in OPERATIONS.items():
        assert (each.get("security") == []) is (each["x-right"] == "none"), route
        assert ("403" in each["responses"]) is (each["x-right"] != "none"), route


def test_the_page_tells_the_statuses_of_each_route() -> None:
    """Those of success where the route stands, those of failure in the table of statuses."""
    page = {(each[0], one_name(each[1])): told for each, told in statuses_on_the_page().items()}
    for route, each in OPERATIONS.items():
        assert {int(status) for status in each["responses"] if status < "400"} == page[route], (
            route
        )
    failures = {status for each in OPERATIONS.values() for status in each["responses"]}
    table = re.findall(r"^\| ([45]\d\d) \|", PAGE, re.MULTILINE)
    assert {each for each in failures if each >= "400"} | {"405"} == set(table)


def test_all_parameters_of_paths_are_described() -> None:
    for (_method, path), _operation in OPERATIONS.items():
        described = {
            resolved(each)["name"] for each in OPENAPI["paths"][path].get("parameters", [])
        }
        assert set(re.findall(r"{(\w+)}", path)) == described, path


def test_operations_have_names_of_their_own_and_tags_that_are_told() -> None:
    names = [each["operationId"] for each in OPERATIONS.values()]
    assert len(set(names)) == len(names)
    assert {tag for each in OPERATIONS.values() for tag in each["tags"]} == {
        each["name"] for each in OPENAPI["tags"]
    }


@pytest.mark.parametrize(("method", "path", "name"), REQUESTS)
def test_every_example_of_a_request_is_accepted(
    world: World, method: str, path: str, name: str
) -> None:
    """And the answer is one that the document tells."""
    operation = OPERATIONS[method, path]
    more: dict[str, Any] = {"query_string": world.query(operation)}
    if name:
        media, value = examples_with_types(method, path)[name]
        value = world.named(value)
        validate(value, operation["requestBody"]["content"][media]["schema"])
        more["data"] = value if isinstance(value, str) else orjson.dumps(value)
        if media == ARCHIVE:
            more["data"] = base64.b64decode(value)
        more["content_type"] = media

    answer = world.tenant.ask(method, world.path(method, path), **more)

    assert answer.status_code < 300, answer.text
    told = response(operation, answer.status_code)
    for header, each in told.get("headers", {}).items():
        assert header in answer.headers or not resolved(each).get("required")
    content = told.get("content", {})
    assert bool(content) is bool(answer.data)
    if content and "schema" in content[answer.mimetype]:
        validate(body_of(answer), content[answer.mimetype]["schema"])


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=map(" ".join, OPERATIONS))
def test_every_example_of_an_answer_fits_its_schema(method: str, path: str) -> None:
    for status in OPERATIONS[method, path]["responses"]:
        for media in response(OPERATIONS[method, path], int(status)).get("content", {}).values():
            if "example" in media:
                validate(media["example"], media["schema"])


def body_of(answer: TestResponse) -> Any:
    return answer.get_json() if answer.is_json else answer.text
