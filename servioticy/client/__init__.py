"""What a client of the platform needs: requests, and a stream that is followed.

`docs/client.md` shows it. What is not used is not loaded: httpx and websockets take a quarter of a
second, which is long for a command that only asks.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from servioticy.client.answers import (
        Answer,
        Answered,
        Conflict,
        NotAcceptable,
        NotAuthorized,
        NotFound,
        Outdated,
        TooLarge,
        TooMany,
        UnknownToken,
    )
    from servioticy.client.async_rest import AsyncRest
    from servioticy.client.batches import BatchResult, Refusal
    from servioticy.client.calls import Call, Claimed, ServiceObject
    from servioticy.client.follower import AsyncFollower, Follower, Refused
    from servioticy.client.rest import Rest
    from servioticy.client.retries import NEVER, Retries

_MODULES = {
    "Answer": "answers",
    "Answered": "answers",
    "AsyncFollower": "follower",
    "AsyncRest": "async_rest",
    "BatchResult": "batches",
    "Call": "calls",
    "Claimed": "calls",
    "Conflict": "answers",
    "Follower": "follower",
    "NEVER": "retries",
    "NotAcceptable": "answers",
    "NotAuthorized": "answers",
    "NotFound": "answers",
    "Outdated": "answers",
    "Refusal": "batches",
    "Refused": "follower",
    "Rest": "rest",
    "Retries": "retries",
    "ServiceObject": "calls",
    "TooLarge": "answers",
    "TooMany": "answers",
    "UnknownToken": "answers",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


__all__ = [
    "NEVER",
    "Answer",
    "Answered",
    "AsyncFollower",
    "AsyncRest",
    "BatchResult",
    "Call",
    "Claimed",
    "Conflict",
    "Follower",
    "NotAcceptable",
    "NotAuthorized",
    "NotFound",
    "Outdated",
    "Refusal",
    "Refused",
    "Rest",
    "Retries",
    "ServiceObject",
    "TooLarge",
    "TooMany",
    "UnknownToken",
]
