"""One client, as those below its connection see it: who it is, and what they tell it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

from api.edge.calls import Request
from servioticy.http_heads import Head


class Client(Protocol):
    """A client waits for its turn, for a page, or reads its answer."""

    keeps_alive: bool
    """whether another request may follow"""
    gone: bool
    """whether it has closed, or we have"""
    who: Hashable
    """whose share the request takes"""

    def is_there(self) -> bool:
        """Tell whether it has not gone."""

    def is_under_way(self) -> bool:
        """Tell whether it waits for an answer."""

    def has_more(self) -> bool:
        """Tell whether it has sent on, or ended, since its request. For any thread."""

    def abort(self) -> None:
        """Close at once, whatever is under way."""

    def break_off(self) -> None:
        """Close at once, and send nothing more of what is written."""

    # Told by the edge

    def body_is_late(self) -> None:
        """Note that the whole body was not there in time."""

    def sending_is_late(self) -> None:
        """Note that little of an answer was taken in the time for it."""

    def begins(self) -> None:
        """Note that a thread will work on the request, and reply."""

    def reply(self, head: Head, result: Any) -> Any:
        """Send an answer from the thread that made it."""

    def answered(self, request: Request, result: Any) -> None:
        """Take what came of a request, or of its first part where it has to wait."""

    def page_made(self, result: Any) -> None:
        """Take the next page of the answer, None after the last, or why there is none."""

    # Told by what sends its answers

    def answer_sent(self) -> None:
        """Note that it has all of its answer."""


class _Nobody:
    """Whom an answer is for whose client has gone: it holds no connection any more."""

    keeps_alive = False
    gone = True
    who: Hashable = None

    def is_there(self) -> bool:
        return False

    def is_under_way(self) -> bool:
        return False

    def has_more(self) -> bool:
        return True

    def abort(self) -> None:
        pass

    def break_off(self) -> None:
        pass

    def body_is_late(self) -> None:
        pass

    def sending_is_late(self) -> None:
        pass

    def begins(self) -> None:
        pass

    def reply(self, head: Head, result: Any) -> Any:  # noqa: ARG002  nobody hears it
        return result

    def answered(self, request: Request, result: Any) -> None:
        pass

    def page_made(self, result: Any) -> None:
        pass

    def answer_sent(self) -> None:
        pass


NOBODY: Client = _Nobody()
