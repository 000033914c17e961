"""What clients publish, and the batches in which updates among that go to the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import orjson

from delivery.rest_api import ApiResponse
from servioticy.domain.model import StreamRef

MAX_BATCH_BYTES = 256 * 1024


class Published(NamedTuple):
    """A message that a client has sent."""

    topic: str
    payload: bytes
    is_promise: bool
    """Whether the client wants to know that it is safe."""
    answered: Callable[[ApiResponse], None]


class Update(NamedTuple):
    """A message that can go with others."""

    stream: StreamRef
    message: Published
    line: bytes
    """How it stands in a batch."""


class Batch:
    """Updates that go together: no more bytes than the API takes, unless there is one alone."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self._bytes = 0

    def takes(self, update: Update, *, of_one_stream: bool) -> bool:
        """Tell whether an update can go with those that are here."""
        if not self.updates:
            return True
        is_other = of_one_stream and self.updates[0].stream != update.stream
        return not is_other and self._bytes + len(update.line) <= MAX_BATCH_BYTES

    def add(self, update: Update) -> None:
        """Take an update."""
        self.updates.append(update)
        self._bytes += len(update.line) + 1

    @property
    def is_promise(self) -> bool:
        """Whether any of them is to be safe."""
        return any(each.message.is_promise for each in self.updates)

    def body(self) -> bytes:
        """Return what the API is sent: a line for each."""
        return b"\n".join(each.line for each in self.updates)


def named(stream: StreamRef, update: bytes) -> bytes:
    """Return an update as it stands in a batch for many streams."""
    return orjson.dumps(
        {
            "serviceObject": stream.service_object,
            "stream": stream.stream,
            "update": orjson.Fragment(update),
        }
    )
