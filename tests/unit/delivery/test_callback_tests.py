"""The test button: what is asked for is sent once, whatever the receiver says."""

from __future__ import annotations

import asyncio

from callback_receivers import DOCUMENT, STREAM, an_update

from delivery.callbacks.asked_tests import AskedTests
from delivery.callbacks.http_client import AttemptResult
from delivery.callbacks.requests import CallbackForm, Outgoing, outgoing
from delivery.feeds.deliveries import Delivery
from servioticy.ports.callback_tests import CallbackTest

TEST = CallbackTest("t", 7, "s", DOCUMENT, STREAM, an_update(1).update)


class Asked:
    """AskedTests in memory, taken once."""

    def __init__(self, *asked: CallbackTest) -> None:
        self.waiting = list(asked)
        self.answers: list[tuple[str, int, str]] = []

    def take(self, most: int, _now_ms: int) -> list[CallbackTest]:
        taken, self.waiting = self.waiting[:most], self.waiting[most:]
        return taken

    def answered(self, test: CallbackTest, status: int, reason: str, _took: int) -> None:
        self.answers.append((test.id, status, reason))


class Attempts:
    """Stands for all callbacks: the receiver says no."""

    def __init__(self) -> None:
        self.made = 0

    async def form(self, _tenant: int, subscription: str, document: bytes) -> CallbackForm:
        return CallbackForm.read(subscription, document)

    async def outgoing(self, _tenant: int, delivery: Delivery) -> Outgoing:
        return outgoing(delivery)

    async def attempt(self, _tenant: int, _form: CallbackForm, _sent: Outgoing) -> AttemptResult:
        self.made += 1
        return AttemptResult(503, "not now")


def test_it_is_one_attempt_whatever_comes_of_it() -> None:
    asked, attempts = Asked(TEST), Attempts()

    async def run() -> None:
        tests = AskedTests(attempts, asked)  # type: ignore[arg-type]
        async with asyncio.timeout(20):
            while not asked.answers:
                await tests.send_all()
        await tests.send_all()
        await tests.stop()

    asyncio.run(run())
    assert attempts.made == 1
    assert asked.answers == [("t", 503, "not now")]
