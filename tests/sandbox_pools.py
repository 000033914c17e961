"""Pools of sandbox processes for tests, with the files that set-up has downloaded."""

from __future__ import annotations

from typing import Any

from sandbox import SandboxOptions, SandboxPool
from servioticy.embedded import javascript
from servioticy.settings import load

JAVASCRIPT = javascript.folder(load())


def a_pool(**options: Any) -> SandboxPool:
    return SandboxPool(JAVASCRIPT, SandboxOptions(**options))
