"""What a client says over a socket with many subscriptions, read; and how it is refused."""

from __future__ import annotations

from typing import Any

import orjson

from delivery.admission.refusals import Refusal, Refused
from delivery.admission.requests import storable
from delivery.feeds.event_ids import EventId, read_event_id

MAX_ID = 200


def read(message: str) -> dict[str, Any]:
    """Return what a client says. Raises Refused."""
    try:
        said = orjson.loads(message)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        raise bad("This is not JSON") from None
    if not isinstance(said, dict):
        raise bad("A message has to be a JSON object")
    if not isinstance(said.get("id"), str) or len(said["id"]) > MAX_ID:
        raise bad(f"id has to be text of at most {MAX_ID} characters")
    return said | {"do": said.get("do")}


def text(said: dict[str, Any], name: str) -> str:
    """Return a member that has to be text. Raises Refused."""
    found = said.get(name)
    if not isinstance(found, str):
        raise bad(f"{name} has to be text")
    return storable(found)


def event(said: dict[str, Any], name: str) -> EventId | None:
    """Return the event that a member names; None where there is none. Raises Refused."""
    if name not in said:
        return None
    found = read_event_id(text(said, name))
    if found is None:
        raise bad(f"{name} has to be the id of an event that came from here")
    return found


def bad(reason: str) -> Refused:
    """Return the error that a message is not what it has to be."""
    return Refused(Refusal(400, reason))


def told(refusal: Refusal) -> dict[str, Any]:
    """Return what a client is told of a refusal."""
    return {"status": refusal.status, "reason": refusal.message}
