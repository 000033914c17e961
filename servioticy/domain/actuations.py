"""How an actuation goes: from queued to done, failed or expired, and never back."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeGuard

import orjson

DEFAULT_TIMEOUT = 24 * 3600
MAX_TIMEOUT = 30 * 24 * 3600
"""Seconds within which an actuation is to be done."""


MAX_PARAMETERS = 16_384
"""Bytes of them."""
MAX_DESCRIPTION = 4_096
"""Bytes of an action as a device is told it; of a longer one it is told the name."""
KEPT = 1_000
"""Actuations of a Service Object that need not be delivered any more, the newest ones."""
STATES_KEPT = 100
"""Of what was said of one actuation, the newest ones."""
MOST = 1_000
"""That wait for one Service Object."""
MOST_OF_TENANT = 10_000
"""That wait for all Service Objects of a tenant."""


class State(Enum):
    """How far an actuation has come."""

    QUEUED = "queued"
    """It waits for its device."""
    SENT = "sent"
    """It is on its way to a client or to a callback, and comes again unless that takes it."""
    DELIVERED = "delivered"
    """A client has acknowledged it, a callback has taken it, or the device itself speaks of it."""
    DONE = "done"
    """The device says so; or somebody else, of one that is delivered."""
    FAILED = "failed"
    """The device says so, or its callback has refused it for good."""
    EXPIRED = "expired"
    """Its time was over before it was done: it is not sent any more. Nothing stores that, it
    follows from the time."""


SUBMITTED = "Submitted"
"""What is said of an actuation before anybody has said anything."""
WAITING = (State.QUEUED, State.SENT)
"""It has still to be delivered."""
ENDED = (State.DONE, State.FAILED, State.EXPIRED)

_BEFORE: Mapping[State, tuple[State, ...]] = {
    State.SENT: (State.QUEUED,),
    State.DELIVERED: WAITING,
    State.DONE: (*WAITING, State.DELIVERED),
    State.FAILED: (*WAITING, State.DELIVERED),
}


def before(state: State) -> list[str]:
    """Return the states from which one comes to this one; in any other nothing changes."""
    return [each.value for each in _BEFORE[state]]


def before_others(state: State) -> list[str]:
    """Return the same where it is not the device that says so.

    Whoever speaks of an actuation that its device has not got cannot have it count as delivered:
    the device would never get it.
    """
    return [] if state is State.DELIVERED else [State.DELIVERED.value]


def seen(stored: State, expires_ms: int, now_ms: int) -> State:
    """Return the state of an actuation now, where this one is stored."""
    is_over = stored not in ENDED and expires_ms <= now_ms
    return State.EXPIRED if is_over else stored


def said(status: str) -> State:
    """Return the state that is reported: by the first word, if that is one of ours.

    Whatever else a device says, it has got the actuation.
    """
    word = status.partition(":")[0].strip().casefold()
    return {"done": State.DONE, "failed": State.FAILED}.get(word, State.DELIVERED)


def description_of(action: Mapping[str, Any]) -> str:
    """Return what a device is told of an action of its document, as JSON."""
    whole = orjson.dumps(action)
    if len(whole) > MAX_DESCRIPTION:
        whole = orjson.dumps({"name": action["name"]})
    return whole.decode()


def timeout_of(action: Mapping[str, object]) -> int:
    """Return the seconds that an action of a stored document has."""
    seconds = action.get("timeout")
    return seconds if is_timeout(seconds) else DEFAULT_TIMEOUT


def is_timeout(seconds: object) -> TypeGuard[int]:
    """Tell whether it is a whole number of seconds that an actuation may have."""
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        return False
    return 1 <= seconds <= MAX_TIMEOUT
