"""Tests of receivers: one attempt each, as soon as somebody asks for it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from servioticy.domain.model import LastUpdate, StreamRef

FORGET_SECONDS = 60
"""Who has no answer by then gets none."""


class CallbackTest(NamedTuple):
    """A made-up update, to be sent once."""

    id: str
    tenant: int
    subscription: str
    document: bytes
    """The subscription's."""
    stream: StreamRef
    update: LastUpdate


class CallbackTests(Protocol):
    """The tests that are asked for. Every call may raise Unavailable."""

    def take(self, most: int, now_ms: int) -> list[CallbackTest]:
        """Return those that are to be sent now; nobody else gets them, and nobody twice."""

    def answered(self, test: CallbackTest, status: int, reason: str, milliseconds: int) -> None:
        """Note what came of it; a newer test in its place stays as it is."""
