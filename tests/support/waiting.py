"""Waiting for something that another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    """Wait until it holds; the bound is for what never happens, not for how fast it does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {condition}"
        time.sleep(0.005)
