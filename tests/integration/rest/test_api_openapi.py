"""The OpenAPI document, the routes and docs/rest.md say the same, and its examples are true."""

from __future__ import annotations

import re
from typing import Any

import pytest
from api_builders import Served
from contract_world import (
    OPENAPI,
    OPERATIONS,
    World,
    a_world,
    request_examples,
    resolved,
    response,
    validate,
)
from rest_page import PAGE, called, rights_on_the_page, statuses_on_the_page

from api.http.authentication import right_to

REQUESTS = [
    pytest.param(method, path, name, id=f"{method} {path} {name}")
    for method, path in OPERATIONS
    for name in request_examples(method, path) or {"": None}
]


@pytest.fixture
def world(served: Served) -> World:
    return a_world(served)


def test_the_document_has_every_route_with_its_right(served: Served) -> None:
    """What the routes say themselves; docs/rest.md is held to them by other tests."""
    routes = {
        (method, called(rule)): right.value if (right := right_to(view)) else "none"
        for rule in served.app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"OPTIONS", "HEAD"}
        if (view := served.app.view_functions[rule.endpoint])
    }

    assert {route: each["x-right"] for route, each in OPERATIONS.items()} == routes
    assert routes == rights_on_the_page()


def test_only_what_needs_no_token_says_so() -> None:
    for route, each in OPERATIONS.items():
        assert (each.get("security") == []) is (each["x-right"] == "none"), route
        assert ("403" in each["responses"]) is (each["x-right"] != "none"), route


def test_the_page_tells_the_statuses_of_each_route() -> None:
    """Those of success where the route stands, those of failure in the table of statuses."""
    page = statuses_on_the_page()
    for route, each in OPERATIONS.items():
        assert {int(status) for status in each["responses"] if status < "400"} == page[route], (
            route
        )
    failures = {status for each in OPERATIONS.values() for status in each["responses"]}
    table = re.findall(r"^\| ([45]\d\d) \|", PAGE, re.MULTILINE)
    assert {each for each in failures if each >= "400"} == set(table)


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
    more: dict[str, Any] = {}
    if name:
        value = world.named(request_examples(method, path)[name])
        [media] = operation["requestBody"]["content"].values()
        validate(value, media["schema"])
        more["json"] = value

    answer = world.tenant.ask(method, world.path(path), **more)

    assert answer.status_code < 300, answer.text
    told = response(operation, answer.status_code)
    for header, each in told.get("headers", {}).items():
        assert header in answer.headers or not resolved(each).get("required")
    content = told.get("content", {})
    assert bool(content) is bool(answer.data)
    if content:
        validate_content(answer.mimetype, answer.get_json(silent=True) or answer.text, content)


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=" ".join)
def test_every_example_of_an_answer_fits_its_schema(method: str, path: str) -> None:
    for status in OPERATIONS[method, path]["responses"]:
        for media in response(OPERATIONS[method, path], int(status)).get("content", {}).values():
            if "example" in media:
                validate(media["example"], media["schema"])


def validate_content(media: str, value: Any, content: dict[str, Any]) -> None:
    assert media in content
    validate(value, content[media]["schema"])
