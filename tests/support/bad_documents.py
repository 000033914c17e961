"""Documents, and what is said where one is refused."""

from __future__ import annotations

import re
from typing import Any

from sandbox.text import argument_names
from servioticy.domain.documents import BadDocument, parse_service_object
from servioticy.domain.documents.actions import check_actions

NUMBER = {"type": "number"}
SIMPLE = {"channels": {"x": NUMBER}}


def streams(**content: Any) -> dict[str, Any]:
    return {"streams": {"a": SIMPLE, **content}}


def resolved(pointer: str, document: Any) -> Any:
    """What a JSON Pointer leads to (RFC 6901). Raises where it leads to nothing."""
    assert pointer == "" or pointer.startswith("/")
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list):
            assert re.fullmatch("0|[1-9][0-9]*", key)
            document = document[int(key)]
        else:
            document = document[key]
    return document


def refusal(document: Any) -> BadDocument | None:
    try:
        parse_service_object(document, "so", argument_names)
        check_actions(document, "so", argument_names)
    except BadDocument as error:
        return error
    return None
