"""A partition goes on past a stored document that is not understood any more."""

from __future__ import annotations

import msgspec
import orjson
from memory import MemoryPlatform

from pipeline.engine import Engine
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.records import UpdateRecord
from servioticy.ports.change_store import NewServiceObject

STRICTER = b"""{"version":"0.2.0","streams":{
  "a":{"channels":{"x":{"type":"numeric"}}},
  "b":{"channels":{"x":{"type":"number","current-value":"function(unheard){return 1}"}}}}}"""


def test_its_updates_are_stored_and_nothing_of_it_computes() -> None:
    platform = MemoryPlatform()
    new = NewServiceObject("so", 1, False, STRICTER, ("a", "b"), (), 0)
    platform.changes.create(new)
    update = b'{"channels":{"x":{"current-value":1}},"lastUpdate":7}'
    platform.log.append(0, UpdateRecord("so", "a", 7, msgspec.Raw(update)))
    store = platform.partition_store(argument_names)
    task = Task(0, store, lambda: platform.output(0), Engine({}, 10, 10))
    task.take([Row(offset, value) for offset, value in enumerate(platform.state.log[0])])

    stored = [row.document for _, row in platform.state.updates.values()]
    assert [orjson.loads(each)["lastUpdate"] for each in stored] == [7]
    assert [(each.service_object, each.stream) for each in platform.state.emitted] == [("so", "a")]
