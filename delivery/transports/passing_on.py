"""What is asked of a subscription that another process delivers to is asked of that one.

The caller's token goes along, so who he is and what he may is decided there as if he had come
there himself. It goes to one other process and no further: where that one has given the
subscription up meanwhile, the caller is told to try again.
"""

from __future__ import annotations

import ssl

from delivery.admission.owner_semaphore import OwnerSemaphore, SemaphoreFull
from delivery.admission.refusals import Refused
from delivery.feeds.feeds import Feeds
from delivery.rest_api import Api, ApiResponse
from delivery.transports.pulling import LONGEST_WAIT, MOST_BYTES, NOT_HERE
from servioticy.http_heads import Head

HEADER = "X-Servioticy-Passed-On"
MARK = "HTTP_X_SERVIOTICY_PASSED_ON"
"""The same as it comes."""
SECONDS = LONGEST_WAIT + 15.0
"""For an answer: as long as a client may wait for updates, and what is done before and after."""
MOST, EACH = 1_000, 250
"""Asked at once, in all and of each tenant."""
ANSWER_BYTES = 3 * MOST_BYTES
"""Of an answer: what is collected, and the update by which that becomes enough."""


class PassingOn:
    """Asks other processes of delivery. Belongs to the event loop's thread."""

    def __init__(self, feeds: Feeds, trust: ssl.SSLContext | bool = True) -> None:
        self._feeds = feeds
        self._places = OwnerSemaphore(MOST, EACH)
        self._others = Api(
            "",
            trust,
            headers={HEADER: "1"},
            seconds=SECONDS,
            connections=MOST,
            answer_bytes=ANSWER_BYTES,
        )

    async def start(self) -> None:
        """Be ready to ask."""
        await self._others.start()

    async def stop(self) -> None:
        """Close all connections."""
        await self._others.stop()

    async def ask(
        self, subscription: str, tenant: int, head: Head, path: str, body: bytes
    ) -> ApiResponse:
        """Return what the process says that has the subscription. Raises Refused."""
        holder = self._feeds.claim.holder(subscription)
        if holder is None or MARK in head.headers:
            raise Refused(NOT_HERE)
        try:
            place = self._places.place(tenant)
        except SemaphoreFull:
            raise Refused(NOT_HERE) from None
        address = f"{holder}{path}?{head.query}"
        token = head.headers.get("HTTP_AUTHORIZATION", "")
        try:
            answer = await self._others.ask(
                head.method, address, token, body, head.headers.get("CONTENT_TYPE", "")
            )
        finally:
            place.release()
        if not answer.status:
            raise Refused(NOT_HERE)
        return answer
