"""What clients say over a socket with many subscriptions, and how they are refused."""

from __future__ import annotations

from typing import Any

import orjson

from delivery.admission.requests import Refusal, storable
from delivery.feeds.event_ids import EventId, read_event_id
from delivery.transports.pulling import Refused

MAX_ID = 200


def read(message: str) -> dict[str, Any]:
    """Read a message. Raises Refused."""
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
    text = said.get(name)
    if not isinstance(text, str):
        raise bad(f"{name} has to be text")
    return storable(text)


def event(said: dict[str, Any], name: str) -> EventId | None:
    """Return the event that a member names, if it is there. Raises Refused."""
    if name not in said:
        return None
    found = read_event_id(text(said, name))
    if found is None:
        raise bad(f"{name} has to be the id of an event that came from here")
    return found


def bad(reason: str) -> Refused:
    """Return why a message is not understood."""
    return Refused(Refusal(400, reason))


def told(refusal: Refusal) -> dict[str, Any]:
    """Return a refusal as a frame tells it."""
    return {"status": refusal.status, "reason": refusal.message}
