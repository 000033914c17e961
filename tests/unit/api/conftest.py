"""A fresh edge for every test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from edge_builders import QUICK, Serving, Told
from memory import MemoryPlatform

from servioticy.settings import changed


@pytest.fixture
def app() -> Iterator[Told]:
    told = Told()
    yield told
    told.gate.set()


@pytest.fixture
def platform() -> MemoryPlatform:
    return MemoryPlatform(2)


@pytest.fixture
def serve(app: Told, platform: MemoryPlatform) -> Iterator[Callable[..., Serving]]:
    with contextlib.ExitStack() as stack:

        def start(**values: Any) -> Serving:
            serving = Serving(changed(QUICK, **values), app, platform)
            stack.callback(serving.stop)
            return serving

        yield start
