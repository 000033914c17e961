"""The bodies that say what a fleet is made with: one object of values, an array, or lines."""

from __future__ import annotations

from typing import Any

from api.http.bodies import body, json_value
from api.http.content_types import sent
from servioticy.domain.documents import BadDocument, json_texts
from servioticy.domain.documents.codes import TOO_MUCH
from servioticy.domain.documents.errors import WHOLE, Part
from servioticy.refusals import Refused

MAX_OBJECTS = 10_000
Sets = list[tuple[Part, Any]]


def parameter_sets() -> Sets:
    """Return the values for each Service Object with the place where they stand.

    Raises BadDocument, and Refused where there are none.
    """
    lines = ("application/x-ndjson", "application/ndjson", "application/jsonl")
    found = sent({"application/json": _json, **dict.fromkeys(lines, _lines)}, "application/json")()
    if not found:
        raise Refused("There are no values to make Service Objects with")
    if len(found) > MAX_OBJECTS:
        reason = f"more than {MAX_OBJECTS} Service Objects at once"
        raise BadDocument(reason, "", TOO_MUCH)
    return found


def _json() -> Sets:
    content = json_value()
    if isinstance(content, list):
        return [(WHOLE.at(number), each) for number, each in enumerate(content)]
    return [(WHOLE, content)]


def _lines() -> Sets:
    found = []
    for number, line in enumerate(body().split(b"\n")):
        if line.strip():
            part = WHOLE.at(number)
            try:
                value = json_texts.read(line)
                json_texts.refuse_nul(value, line)
            except BadDocument as error:
                where = part.at(*error.pointer.split("/")[1:])
                raise where.bad(f"line {number}: {error.reason}", error.code) from error
            found.append((part, value))
    return found
