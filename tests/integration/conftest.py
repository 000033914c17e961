"""What tests of parts share that stand on what they really stand on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sandbox_pools import a_pool
from support.running_bridge import bridged, delivery_here, external_broker  # noqa: F401  fixtures
from support.running_broker import RunningBroker

from sandbox import SandboxPool


@pytest.fixture(params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    """A pool of sandbox processes on each engine, with the POOL_OPTIONS of the module, if any."""
    pool = a_pool(engine=request.param, **getattr(request.module, "POOL_OPTIONS", {}))
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def running_broker() -> Iterator[RunningBroker]:
    """One for all tests of a module."""
    with RunningBroker() as broker:
        yield broker


@pytest.fixture
def broker(running_broker: RunningBroker) -> RunningBroker:
    """The module's, of which nothing is left of the test before."""
    running_broker.forget()
    return running_broker
