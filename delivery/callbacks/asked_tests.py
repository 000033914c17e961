"""The test button: a made-up update is sent at once, outside of the order, in one attempt.

Whoever asks leaves the wish in the store. It is taken before it is sent, so whoever is killed
meanwhile leaves a test without an answer, and nobody sends it twice.
"""

from __future__ import annotations

import asyncio
import logging
import time

from delivery.callbacks.receiver import Callbacks
from delivery.feeds.deliveries import Delivery
from delivery.repeating import for_ever
from servioticy.errors import Unavailable
from servioticy.ports.callback_tests import CallbackTest, CallbackTests

LOOK_SECONDS = 0.5
MOST_AT_ONCE = 500

log = logging.getLogger("servioticy.delivery")


class AskedTests:
    """Sends the tests that are asked for. All methods belong to the event loop's thread."""

    def __init__(self, callbacks: Callbacks, store: CallbackTests) -> None:
        self._callbacks = callbacks
        self._store = store
        self._sending: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look for tests from now on."""
        self._looking = asyncio.create_task(for_ever(self._look, "tests"))

    async def stop(self) -> None:
        """Send no more; those under way have no answer."""
        tasks = [*self._sending, *([self._looking] if self._looking else [])]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        await asyncio.sleep(LOOK_SECONDS)
        await self.send_all()

    async def send_all(self) -> None:
        """Begin to send what is asked for. Raises Unavailable."""
        free = MOST_AT_ONCE - len(self._sending)
        if free <= 0:
            return
        for test in await asyncio.to_thread(self._store.take, free, int(time.time() * 1000)):
            task = asyncio.create_task(self._send(test))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, test: CallbackTest) -> None:
        callbacks, tenant = self._callbacks, test.tenant
        form = await callbacks.form(tenant, test.subscription, test.document)
        sent = await callbacks.outgoing(tenant, Delivery(test.stream, test.update, None))
        began = time.monotonic()
        answer = await callbacks.attempt(tenant, form, sent)
        took = int((time.monotonic() - began) * 1000)
        try:
            await asyncio.to_thread(self._store.answered, test, answer.status, answer.reason, took)
        except Unavailable as error:
            log.warning("test_not_noted", extra={"why": str(error)})
