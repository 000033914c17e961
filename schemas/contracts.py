"""The descriptions of the whole API, each put together to one document that stands alone.

The parts of OpenAPI are the files of `openapi/`, one a tag; they, and AsyncAPI, refer to the
JSON Schemas of this folder, which are not written down a second time.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

FOLDER = files("schemas")
ROOT = "openapi.json"
METHODS = ("get", "put", "post", "delete", "patch")
BEFORE_A_DOT = "x-parameters-before-a-dot"
"""Of an operation: words with which parameters begin that a tenant names himself."""
STATUSES = "x-statuses"
"""In the root: the statuses that many operations have, and are not repeated at each."""


@cache
def openapi() -> dict[str, Any]:
    """Return the OpenAPI document."""
    document = _together()
    _give_statuses(document, document.pop(STATUSES))
    return _whole(document)


@cache
def delivery() -> dict[str, Any]:
    """Return the OpenAPI document of what the delivery program serves over plain HTTP."""
    return _whole(_read("delivery.json"))


@cache
def console() -> dict[str, Any]:
    """Return the OpenAPI document of the sessions of the console."""
    return _whole(_read("console.json"))


@cache
def asyncapi() -> dict[str, Any]:
    """Return the AsyncAPI document."""
    return _whole(_read("asyncapi.json"))


@cache
def query_parameters() -> dict[tuple[str, str], frozenset[str]]:
    """Return which parameters an operation of the API has behind the question mark.

    By method, and path with `{}` for each name; those that may have more behind a dot by what
    stands before it.
    """
    document = _together()
    shared, found = document["components"]["parameters"], {}
    for (method, path), operation in operations(document).items():
        described = [
            *document["paths"][path].get("parameters", ()),
            *operation.get("parameters", ()),
        ]
        whole = [shared[_name_of(each["$ref"])] if "$ref" in each else each for each in described]
        names = {each["name"] for each in whole if each["in"] == "query"}
        found[method, re.sub(r"{\w+}", "{}", path)] = frozenset(
            {*names, *operation.get(BEFORE_A_DOT, ())}
        )
    return found


def operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the operations of an OpenAPI document, each by its method and path."""
    return {
        (method.upper(), path): each
        for path, item in document["paths"].items()
        for method, each in item.items()
        if method in METHODS
    }


def _together() -> dict[str, Any]:
    """Return the root with the paths of all parts."""
    document = _read(f"openapi/{ROOT}")
    for part in sorted(each.name for each in (FOLDER / "openapi").iterdir()):
        if part.endswith(".json") and part != ROOT:
            document["paths"] |= _read(f"openapi/{part}")["paths"]
    return document


def _give_statuses(document: dict[str, Any], shared: dict[str, list[str]]) -> None:
    for (method, path), operation in operations(document).items():
        with_token = operation["x-right"] != "none"
        added = [
            *shared["every route"],
            *(shared["with a token"] if with_token else ()),
            *(shared["of a Service Object"] if "{so}" in path else ()),
            *(shared["with a body"] if "requestBody" in operation else ()),
            *(shared["of a read"] if method == "GET" else ()),
        ]
        responses = operation["responses"]
        responses |= {
            each: {"$ref": f"#/components/responses/{each}"}
            for each in added
            if each not in responses
        }
        operation["responses"] = dict(sorted(responses.items()))


def _whole(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with the JSON Schemas that it refers to among its components."""
    schemas = document["components"]["schemas"]
    whole: dict[str, Any] = _pointed(document, "")
    found = {name for name in _names(document) if name not in schemas}
    for name in sorted(found):
        schema = _read(f"{name}.json")
        del schema["$schema"], schema["$id"]
        whole["components"]["schemas"][name] = _pointed(schema, f"/components/schemas/{name}")
    return whole


def _pointed(value: Any, here: str) -> Any:
    """Return the value with every reference leading to a place in the one document."""
    if isinstance(value, list):
        return [_pointed(each, here) for each in value]
    if not isinstance(value, dict):
        return value
    pointed = {key: _pointed(each, here) for key, each in value.items()}
    if isinstance(value.get("$ref"), str):
        file, _, place = value["$ref"].partition("#")
        if file and file != ROOT:
            place = f"/components/schemas/{_name(file)}{place}"
        elif not file:
            place = here + place
        pointed["$ref"] = f"#{place}"
    return pointed


def _names(value: Any) -> set[str]:
    """Return the JSON Schemas that a value refers to."""
    if isinstance(value, list):
        return set().union(*map(_names, value))
    if not isinstance(value, dict):
        return set()
    found = set().union(*map(_names, value.values()))
    file = value["$ref"].partition("#")[0] if isinstance(value.get("$ref"), str) else ""
    return found | ({_name(file)} if file and file != ROOT else set())


def _name_of(reference: str) -> str:
    """Return the last part of the place that a reference leads to."""
    return reference.rpartition("/")[2]


def _name(file: str) -> str:
    return file.rpartition("/")[2].removesuffix(".json")


def _read(path: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FOLDER.joinpath(*path.split("/")).read_text("utf-8"))
    return found
