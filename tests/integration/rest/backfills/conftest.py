"""A platform whose backfills run, and two composites that came later than what they read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from api_builders import NOW, Caller, Platform, Served
from backfill_builders import (
    DOUBLE,
    PLUS_ONE,
    Filled,
    changed_to,
    document,
    sent,
)
from sandbox_pools import a_pool

from api.app import create_app
from sandbox import SandboxPool
from sandbox.text import argument_names
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.settings import Settings


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    found = a_pool()
    yield found
    found.close()


@pytest.fixture
def served(backend: Platform) -> Served:
    settings = Settings()
    return Served(create_app(backend.ports, settings, lambda: NOW, argument_names), backend)


@pytest.fixture
def filled(served: Served, pool: SandboxPool) -> Filled:
    return Filled(served, JavaScript(pool))


@pytest.fixture
def late(filled: Filled, alice: Caller) -> str:
    """Two composites, one upon the other, of which nothing was there when updates came."""
    so = alice.create(document())
    sent(alice, so, (1, 10), (2, 20), (3, 30), (4, 40))
    filled.compute()
    changed_to(alice, so, document(double=DOUBLE, more=PLUS_ONE))
    filled.compute()
    return so
