"""How wide a graph may be: one update and ten thousand composites, in real V8."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from memory import MemoryPlatform
from new_service_objects import new_service_object
from sandbox_pools import a_pool

from pipeline.engine import Engine
from pipeline.spark.worker import limits_of
from pipeline.task import Task
from pipeline.work import Row
from sandbox import SandboxPool, argument_names
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.records import UpdateRecord
from servioticy.settings import Settings

OBJECTS, STREAMS = 10, 1000


@pytest.fixture
def pool() -> Iterator[SandboxPool]:
    pool = a_pool()
    yield pool
    pool.close()


def a_service_object(
    platform: MemoryPlatform, tenant: int, id_: str, document: dict[str, Any]
) -> None:
    platform.changes.create(new_service_object(tenant, id_, document))


def adding(number: int) -> dict[str, Any]:
    """A composite stream: the source's value plus a number of its own."""
    code = f'function(source){{return source.channels.v["current-value"]+{number}}}'
    return {"channels": {"v": {"type": "number", "current-value": code}}}


def test_one_update_wakes_ten_thousand_composites(pool: SandboxPool) -> None:
    """All of them are stored by one transaction and emitted in order of subscription."""
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("t")) or 0
    a_service_object(
        platform, tenant, "device", {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}
    )
    for n in range(OBJECTS):
        document = {
            "version": "0.2.0",
            "groups": {"source": {"soIds": ["device"], "stream": "data"}},
            "streams": {f"c{k}": adding(STREAMS * n + k) for k in range(STREAMS)},
        }
        a_service_object(platform, tenant, f"so{n}", document)
    body = msgspec.Raw(b'{"channels":{"v":{"current-value":1}},"lastUpdate":7}')
    platform.log.append(0, UpdateRecord("device", "data", 7, body))
    settings = Settings()
    engine = Engine(
        {"javascript": JavaScript(pool)},
        settings.pipeline.max_batch_updates,
        settings.pipeline.head_cache_bytes,
        # The machine that runs the tests may be busy with others.
        limits_of(settings)._replace(tree_seconds=math.inf),
    )
    task = Task(0, platform.partition_store(argument_names), lambda: platform.output(0), engine)
    task.take(Row(offset, value) for offset, value in enumerate(platform.state.log[0]))
    while platform.state.put_off.keys() - platform.state.taken_up:  # until all is loaded
        task.take(())

    emitted = [
        json.loads(bytes(each.update))["channels"]["v"]["current-value"]
        for each in platform.state.emitted
    ]
    assert emitted == [1, *range(1, OBJECTS * STREAMS + 1)]
    assert len(platform.state.updates) == OBJECTS * STREAMS + 1
