"""The Chromium of benchmarks, for tests."""

from __future__ import annotations

from benchmarks.chromium import FLAGS, chromium

__all__ = ["FLAGS", "chromium"]
