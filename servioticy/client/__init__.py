"""What a client of the platform needs: requests, and a stream that is followed.

`docs/client.md` shows it.
"""

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
