"""When results of windows come out: before their end, too, and on which condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servioticy.domain.documents.code import Code
from servioticy.domain.documents.codes import BAD_WINDOW, NO_CHOICE, REQUIRED, WRONG_TYPE
from servioticy.domain.documents.durations import milliseconds
from servioticy.domain.documents.errors import Part
from servioticy.domain.windowed import WHEN

LEAST_EARLY = 100
"""Milliseconds from one time to the next at which results come out early."""

EVERY = "every"


def parse_emit(content: Mapping[str, Any], part: Part) -> int | None:
    """Return how often results come out early, in ms; 0: with each update, None: never.

    `content` is the window. Where code says when, it is asked with each update. Raises
    BadDocument.
    """
    place = part.at("emit", words="emit")
    value = content.get("emit", "final")
    if isinstance(value, dict):
        return _chosen(value, place)
    if value == "final":
        return None
    if value == "updates":
        return 0
    choices = '"final", "updates", {"every": "10s"} or {"when": "air.count >= 100"}'
    raise place.bad(f"has to be {choices}", NO_CHOICE)


def _chosen(value: dict[str, Any], place: Part) -> int:
    for key in value:
        if key not in (EVERY, WHEN):
            reason = f"emit may have {EVERY} or {WHEN} and nothing else"
            raise place.at(key).bad(reason, BAD_WINDOW)
    if not value:
        reason = 'has to have every, such as {"every": "10s"}, or when'
        raise place.bad(reason, REQUIRED)
    if len(value) > 1:
        raise place.at(EVERY).bad(f"there is {WHEN}, too: emit has one of them", BAD_WINDOW)
    if WHEN not in value:
        return milliseconds(value[EVERY], place.at(EVERY, words=EVERY), LEAST_EARLY)
    if not isinstance(value[WHEN], str):
        raise place.at(WHEN, words=WHEN).bad("has to be text", WRONG_TYPE)
    return 0


def when_of(stream: Part, content: Mapping[str, Any]) -> Code | None:
    """Return the code that says when windows of a stream come out, if its document has one.

    Whether all else of the window is as it has to be is not asked.
    """
    window = content.get("window")
    emit = window.get("emit") if isinstance(window, dict) else None
    text = emit.get(WHEN) if isinstance(emit, dict) else None
    if not isinstance(text, str):
        return None
    return Code(text, stream.at("window", "emit", WHEN, words=WHEN))
