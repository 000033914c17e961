"""Reading a request's body: its size, its JSON, and what JSON leaves open."""

from __future__ import annotations

import json
from typing import Any

import orjson
from flask import request

from api.errors import Refused, TooLarge


def body() -> bytes:
    """The whole body, whatever its Content-Type. Raises for none, and for too large a one."""
    content = request.get_data(cache=False)
    if len(content) >= (request.max_content_length or len(content) + 1):
        raise TooLarge
    if not content:
        raise Refused("No data in the request")
    return content


def json_object() -> dict[str, Any]:
    """The body as a JSON object.

    Raises Refused with the place where it is no JSON. A key that occurs twice is refused,
    too: one of the two would be lost without a word.
    """
    content = body()
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise Refused(f"The request is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise Refused("The request has to be a JSON object")
    try:
        orjson.dumps(value)  # refuses what is nested deeper than we could answer
    except orjson.JSONEncodeError as error:
        raise Refused("The request is nested too deeply: at most 254 levels") from error
    # Numbers are of no interest here, and very long ones would be refused by Python.
    json.loads(content, object_pairs_hook=_once, parse_int=len, parse_float=len)
    return value


def _once(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            siblings = ", ".join(name[:40] for name, _ in pairs[:5])
            raise Refused(f"The key {key[:100]!r} occurs twice in one object: {siblings}, ...")
        seen.add(key)
