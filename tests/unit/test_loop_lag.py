"""A loop that is held up says so."""

from __future__ import annotations

import asyncio
import time

from scraped import samples

from servioticy.metrics import Registry
from servioticy.metrics.loop_lag import TICK_SECONDS, LoopLag

HELD_SECONDS = 0.3


def test_what_holds_a_loop_up_is_counted() -> None:
    """It counts what others would have waited, and not how often: one hold is one tick late."""
    registry = Registry(with_process=False)

    async def hold() -> None:
        lag = LoopLag(registry)
        lag.start()
        time.sleep(TICK_SECONDS + HELD_SECONDS)
        for _ in range(2):  # the timer comes behind those who are ready
            await asyncio.sleep(0)
        lag.stop()
        await asyncio.sleep(2 * TICK_SECONDS)

    asyncio.run(hold())

    found = samples(registry.text())
    assert found["servioticy_loop_lag_seconds_count"] == 1
    assert found["servioticy_loop_lag_seconds_sum"] >= HELD_SECONDS
