"""A fresh platform for every test."""

from __future__ import annotations

import pytest
from api_builders import NOW, Caller, Served

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
