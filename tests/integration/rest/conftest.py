"""A fresh API on a fresh Postgres for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from api_builders import NOW, Caller, Platform, Served

from api.app import create_app
from sandbox.text import argument_names
from servioticy.settings import Settings, changed


@pytest.fixture
def backend(dsn: str) -> Iterator[Platform]:
    found = Platform(dsn)
    yield found
    found.database.close()


@pytest.fixture
def served(backend: Platform) -> Served:
    settings = changed(Settings(), read_wait_seconds=0.02, max_body_bytes=20_000)
    return Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)


@pytest.fixture
def alice(served: Served) -> Caller:
    return served.tenant("alice")


@pytest.fixture
def bob(served: Served) -> Caller:
    return served.tenant("bob")
