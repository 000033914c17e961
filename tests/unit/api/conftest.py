"""A fresh platform for every test."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from api_builders import NOW, Caller, Served
from edge_builders import QUICK, Serving, Told

from api.app import create_app
from sandbox.text import argument_names
from servioticy.memory import MemoryPlatform
from servioticy.settings import Settings, changed


@pytest.fixture
def served() -> Served:
    platform = MemoryPlatform(2)
    settings = changed(Settings(), read_wait_seconds=0.02, max_body_bytes=20_000)
    app = create_app(platform, settings, lambda: NOW, argument_names)
    return Served(app, platform)


@pytest.fixture
def alice(served: Served) -> Caller:
    return served.tenant("alice")


@pytest.fixture
def bob(served: Served) -> Caller:
    return served.tenant("bob")


@pytest.fixture
def app() -> Iterator[Told]:
    told = Told()
    yield told
    told.gate.set()


@pytest.fixture
def platform() -> MemoryPlatform:
    return MemoryPlatform(1)


@pytest.fixture
def serve(app: Told, platform: MemoryPlatform) -> Iterator[Callable[..., Serving]]:
    with contextlib.ExitStack() as stack:

        def start(**values: Any) -> Serving:
            serving = Serving(changed(QUICK, **values), app, platform)
            stack.callback(serving.stop)
            return serving

        yield start
