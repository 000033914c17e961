"""One of the many subscriptions of a socket: a feed, and what is to be done when it ends.

It has no task of its own: a socket may have a thousand, of which most have nothing to send. It
tells its socket when it has, and is asked for one update at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import orjson

from delivery.endings import Ending
from delivery.feeds.deliveries import Delivery, FeedEnded
from delivery.feeds.event_ids import event_id
from delivery.feeds.feed import Feed


class Given(Protocol):
    """What gives the updates: a feed that is lent, or one that is pulled."""

    def take_now(self) -> Delivery | None:
        """Return the next update, if there is one now. Raises FeedEnded."""


def _nobody() -> None:
    """Nobody sends it any more."""


class LiveSubscription:
    """All methods belong to the event loop's thread."""

    __slots__ = ("_done", "_ending", "_given", "feed", "give_back", "id", "is_ready", "ready")

    def __init__(
        self, id_: str, feed: Feed, given: Given, done: Callable[[Delivery], object]
    ) -> None:
        self.id = id_
        self.feed = feed
        self.is_ready = False
        """Whether its socket knows that it may have something to send."""
        self.ready: Callable[[LiveSubscription], None] | None = None
        """Hears when it may have; None: nobody sends yet, or any more."""
        self._given = given
        self._done = done
        self._ending: Ending | None = None
        self.give_back: Callable[[], object] | None = None
        """What is to be done when it is over."""

    def begin(self, ready: Callable[[LiveSubscription], None]) -> None:
        """Tell this from now on when there may be something to send; also what there is now."""
        self.ready = ready
        self.feed.tell(self._wake)
        self._wake()

    def _wake(self) -> None:
        if self.ready is not None and not self.is_ready:
            self.is_ready = True
            self.ready(self)

    def end(self, ending: Ending) -> None:
        """Let it send nothing any more but why."""
        self._ending = self._ending or ending
        self._wake()

    def take_now(self) -> Delivery | None:
        """Return the next update, if there is one now. Raises FeedEnded."""
        if self._ending is not None:
            raise FeedEnded(self._ending)
        return self._given.take_now()

    def done(self, delivery: Delivery) -> None:
        """Note that it is sent."""
        self._done(delivery)

    def frame(self, delivery: Delivery) -> bytes:
        """Return an update as its client gets it."""
        return b'{"id":%s,"event":"%s","serviceObject":%s,"stream":%s,"update":%s}' % (
            orjson.dumps(self.id),
            str(event_id(delivery, self.feed.log)).encode(),
            orjson.dumps(delivery.stream.service_object),
            orjson.dumps(delivery.stream.stream),
            delivery.update.document,
        )

    def over(self) -> None:
        """Give back what it has; harmless if that is done."""
        self.ready = None
        self.feed.tell(_nobody)
        give_back, self.give_back = self.give_back, None
        if give_back is not None:
            give_back()
