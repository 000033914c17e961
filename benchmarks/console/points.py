"""How many points a second a stream's page hears live, and how many frames it makes meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.console.device import Device
from benchmarks.console.looking import looking

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def measure(
    browser: Browser, url: str, token: str, device: Device, rates: Sequence[int], seconds: float
) -> None:
    """Print a line for each rate."""
    print(f"{'asked/s':>8} {'sent/s':>8} {'heard/s':>8} {'frames/s':>9} {'longest ms':>11}")
    for rate in (0, *rates):
        with looking(browser, url, token) as one:
            one.open(device.page)
            one.live()
            with device.sending(rate) as sent:
                one.page.wait_for_timeout(1_000)
                one.page.evaluate("window.seen.longest = 0")
                before, sent_before = _now(one.page), sent.count
                one.page.wait_for_timeout(seconds * 1_000)
                after, sent_after = _now(one.page), sent.count
        took = (after["at"] - before["at"]) / 1_000
        heard, frames = ((after[name] - before[name]) / took for name in ("heard", "frames"))
        print(
            f"{rate:>8} {(sent_after - sent_before) / took:>8.0f} {heard:>8.0f} {frames:>9.1f}"
            f" {after['longest']:>11.0f}",
            flush=True,
        )


def _now(page: object) -> dict[str, float]:
    found: dict[str, float] = page.evaluate(  # type: ignore[attr-defined]
        "({...window.seen, at: performance.now()})"
    )
    return found
