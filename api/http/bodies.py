"""Reading a request's body: its size, its JSON, and what JSON leaves open."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson
from flask import request

from api.http.content_types import sent
from servioticy.domain.documents import BadDocument, json_texts
from servioticy.domain.documents.codes import DUPLICATE, TOO_NESTED, WRONG_TYPE
from servioticy.domain.documents.errors import Part
from servioticy.refusals import Refused, TooLarge

JSON_TYPES = {"application/json": True, "text/json": True}
TEXT_TYPES = {"text/plain": True}


def body() -> bytes:
    """Return the whole body, whatever its Content-Type.

    Raises for none, and for too large a one.
    """
    content = request.get_data(cache=False)
    if len(content) >= (request.max_content_length or len(content) + 1):
        raise TooLarge
    if not content:
        raise Refused("No data in the request")
    return content


def json_body(types: Mapping[str, bool] = JSON_TYPES) -> bytes:
    """Return the whole body, which is JSON by its Content-Type, or claims none.

    `types` are others that the route takes as JSON.
    """
    sent(types, "application/json")
    return body()


def text_body(types: Mapping[str, bool] = TEXT_TYPES) -> str:
    """Return the whole body as it is, perhaps empty; plain text unless `types` names others.

    Raises for another type, for what is no UTF-8, and for a NUL, which no stored text has.
    """
    sent(types, "text/plain")
    return _text(request.get_data(cache=False))


def _text(content: bytes) -> str:
    if len(content) >= (request.max_content_length or len(content) + 1):
        raise TooLarge
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise Refused("The request is not text in UTF-8") from error
    if "\0" in text:
        raise Refused("The request has a NUL in it")
    return text


def json_object(types: Mapping[str, bool] = JSON_TYPES) -> dict[str, Any]:
    """Return the body as a JSON object. Raises as `json_value` does."""
    value = json_value(types)
    if not isinstance(value, dict):
        raise BadDocument("The request has to be a JSON object", "", WRONG_TYPE)
    return value


def optional_object() -> dict[str, Any]:
    """Return the body as a JSON object, an empty one where there is no body."""
    return json_object() if request.content_length else {}


def json_value(types: Mapping[str, bool] = JSON_TYPES) -> Any:
    """Return the body as JSON.

    Raises BadDocument with the place where it is none. A key that occurs twice is refused, too:
    one of the two would be lost without a word.
    """
    content = json_body(types)
    value = json_texts.read(content)
    try:
        written = orjson.dumps(value)  # refuses what is nested deeper than we could answer
    except orjson.JSONEncodeError as error:
        reason = "The request is nested too deeply: at most 254 levels"
        raise BadDocument(reason, "", TOO_NESTED) from error
    if written != content:  # else nothing of it was lost
        _refuse_repeated_keys(content)
    json_texts.refuse_nul(value, content)
    return value


class _RepeatedKeyError(Exception):
    """A key occurs twice in one object."""


class _Pairs(list[tuple[str, Any]]):
    """An object as its keys and values, each as often as it occurs."""


def _refuse_repeated_keys(content: bytes) -> None:
    try:
        _loaded(content, _refuse_twice)
    except _RepeatedKeyError:
        # Where it is, is only worked out now: it takes several times as long.
        found = _repeated(_loaded(content, _Pairs), [])
        if found is not None:
            raise found from None


def _loaded(content: bytes, hook: Callable[[list[tuple[str, Any]]], Any]) -> Any:
    # Numbers are of no interest here, and very long ones would be refused by Python.
    return json.loads(content, object_pairs_hook=hook, parse_int=len, parse_float=len)


def _refuse_twice(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _RepeatedKeyError


def _repeated(value: list[Any], steps: list[str | int]) -> BadDocument | None:
    """Return the error for the first key that occurs twice; `steps` lead to the value."""
    inner: Iterable[tuple[str | int, Any]] = enumerate(value)
    if isinstance(value, _Pairs):
        inner = value
        seen: set[str] = set()
        for key, _ in value:
            if key in seen:
                siblings = ", ".join(name[:40] for name, _ in value[:5])
                reason = f"The key {key[:100]!r} occurs twice in one object: {siblings}, ..."
                return BadDocument(reason, Part((*steps, key)).pointer, DUPLICATE)
            seen.add(key)
    for step, each in inner:
        if isinstance(each, list):
            found = _repeated(each, [*steps, step])
            if found is not None:
                return found
    return None
