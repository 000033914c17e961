"""Bytes over the wire and the first paints of each page, opened the first time and again."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from benchmarks.console.device import Device
from benchmarks.console.looking import looking

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def pages(device: Device) -> dict[str, str]:
    """Return the paths of all pages by what they are called."""
    named = ("devices", "topology", "workflows", "operators", "deliveries", "jobs", "usage")
    found = {name: f"/console/{name}" for name in (*named, "grants", "members", "tokens", "audit")}
    return {
        "stream": device.page,
        "derived": device.page.replace("/air", "/warm"),
        "device": f"/console/devices/{device.id}",
        "editor": f"/console/devices/{device.id}/document",
        **found,
    }


def measure(browser: Browser, url: str, token: str, device: Device, rounds: int) -> None:
    """Print a line for each page; the middle of all rounds."""
    head = ("page", "bytes", "requests", "first ms", "largest", "again: bytes", "first", "largest")
    print("{:11} {:>8} {:>8} {:>8} {:>8} {:>12} {:>8} {:>8}".format(*head))
    for name, path in pages(device).items():
        found: list[list[float]] = []
        for _ in range(rounds):
            with looking(browser, url, token) as one:
                # Signing in has asked for what all pages share.
                one.session.send("Network.clearBrowserCache")
                first = one.open(path)
                line = [one.bytes, float(one.requests), *first]
                again = one.open(path)
                found.append([*line, one.bytes, *again])
        middle = [statistics.median(each) for each in zip(*found, strict=True)]
        text = "{:>8,.0f} {:>8.0f} {:>8.0f} {:>8.0f} {:>12,.0f} {:>8.0f} {:>8.0f}".format(*middle)
        print(f"{name:11} {text}", flush=True)
