"""What a client of the broker may do wrong, in words for that client."""

from __future__ import annotations


class Malformed(Exception):
    """What a client sent is not what its protocol allows; its connection ends."""


class TooLarge(Malformed):
    """A packet or frame is larger than it may be."""


class BadTopic(Exception):
    """A topic that nobody can publish to, or subscribe to."""


class Refused(Exception):
    """The client may not do that, by the status that the REST API has for it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
