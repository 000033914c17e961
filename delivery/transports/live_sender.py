"""What sends one socket the updates of all its subscriptions: one each in turn, in turns."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from delivery.endings import Ending
from delivery.feeds.deliveries import FeedEnded
from delivery.transport import Disconnected
from delivery.transports.live_outlet import LiveOutlet
from delivery.transports.live_subscription import LiveSubscription
from delivery.turns import Turns

FRAMES_A_TURN = 16
BYTES_A_TURN = 256 * 1024
"""And the frame that passes it."""

log = logging.getLogger("servioticy.delivery")


class LiveSender:
    """One task, which sleeps while nothing is to be sent."""

    def __init__(
        self, outlet: LiveOutlet, turns: Turns, ended: Callable[[LiveSubscription], None]
    ) -> None:
        """`ended` hears of a subscription that has ended, before its client is told."""
        self._outlet = outlet
        self._turns = turns
        self._ended = ended
        self._ready: deque[LiveSubscription] = deque()
        self._something = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def ready(self, subscription: LiveSubscription) -> None:
        """Ask this one in its turn whether it has something to send."""
        self._ready.append(subscription)
        self._something.set()

    async def stop(self) -> None:
        """Send nothing any more."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while True:
                while not self._ready:
                    self._something.clear()
                    await self._something.wait()
                await self._turns.take(self._outlet.tenant)
                await self._turn()
        except Disconnected:
            pass
        except Exception:
            log.exception("sender_failed")
            self._outlet.abort()

    async def _turn(self) -> None:
        until = self._outlet.sent_bytes + BYTES_A_TURN
        for _ in range(FRAMES_A_TURN):
            if not self._ready or self._outlet.sent_bytes > until:
                return
            subscription = self._ready.popleft()
            subscription.is_ready = False
            if subscription.ready is not None:
                await self._send_one(subscription)

    async def _send_one(self, subscription: LiveSubscription) -> None:
        """Send its next update, if it has one; or why it has ended."""
        reason: Ending | None = None
        try:
            delivery = subscription.take_now()
            if delivery is None:
                return
            await self._outlet.send(subscription.frame(delivery))
            subscription.done(delivery)
            if subscription.ready is not None and not subscription.is_ready:
                subscription.is_ready = True  # behind all the others
                self.ready(subscription)
            return
        except FeedEnded as ended:
            reason = ended.ending
        except Disconnected:
            raise
        except Exception:
            log.exception("subscription_failed")
            reason = Ending.FAILED
        self._ended(subscription)
        await self._outlet.tell(subscription.id, "ended", {"reason": reason.value})
