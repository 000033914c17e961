"""A feed about many streams, as long as its client stays: it follows them as they come and go."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace

from delivery.admission.sources import SourceAdmission
from delivery.admission.stays import Stay, Stays
from delivery.endings import Ending
from delivery.feeds.feed import Feed
from delivery.feeds.feeds import MOST_STREAMS, Feeds
from delivery.feeds.lent import lend_source
from delivery.repeating import patiently
from servioticy.ports.cursors import About


class TooMany(Exception):
    """It is about more streams than can be watched so."""


class Following:
    """Keeps a lent feed about what its source is about now.

    All methods belong to the event loop's thread.
    """

    def __init__(self, stays: Stays, feeds: Feeds, admission: SourceAdmission) -> None:
        self.feed: Feed
        self._stays = stays
        self._feeds = feeds
        self._admission = admission
        self._token_ends = _later(admission.expires_in)
        self._end: Callable[[Ending], None]
        self._stay: Stay | None = None
        self._looking: asyncio.Task[None] | None = None

    async def lend(self) -> None:
        """Begin to feed from now on. Raises TooMany, Unavailable."""
        self.feed = lend_source(self._feeds, self._admission, await self._about())

    def start(self, end: Callable[[Ending], None]) -> None:
        """Follow what changes; `end` is called where it may not be watched any more."""
        self._end = end
        self._begin()

    def stop(self) -> None:
        """Follow it no more, and take the feed back."""
        if self._looking is not None:
            self._looking.cancel()
        if self._stay is not None:
            self._stays.leave(self._stay)
        self._feeds.take_back(self.feed)

    def _begin(self) -> None:
        objects = {each.service_object for each in self.feed.subscription.streams}
        self._stay = self._stays.begin(self._admission, self._end, self._look, objects)

    def _look(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_anew())

    async def _look_anew(self) -> None:
        """Ask what it is about now; what changes meanwhile is asked about again."""
        try:
            about = await patiently(self._about, "feeds")
        except TooMany:
            self._end(Ending.SUBSCRIPTION_CHANGED)
            return
        now = self.feed.subscription._replace(streams=about.streams, newest=about.newest)
        self._feeds.be_about(self.feed, now)
        if self._stay is not None:
            self._stays.leave(self._stay)
        self._begin()

    async def _about(self) -> About:
        changes = self._stays.changes
        about = await self._feeds.about(self._admission.tenant, self._admission.source)
        if len(about.streams) > MOST_STREAMS:
            raise TooMany
        # It is looked at anew when the first of them may be read no more, or its token ends.
        ends = min(self._token_ends, _later(about.holds_for))
        left = None if math.isinf(ends) else ends - asyncio.get_running_loop().time()
        self._admission = replace(self._admission, changes=changes, expires_in=left)
        return about


def _later(seconds: float | None) -> float:
    """Return when so many seconds are over, by the clock of the loop; inf: never."""
    return math.inf if seconds is None else asyncio.get_running_loop().time() + seconds
