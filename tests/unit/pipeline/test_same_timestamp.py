"""Two updates with one timestamp: history keeps the later one, subscribers get both."""

from __future__ import annotations

import msgspec
from memory import MemoryPlatform

from pipeline.engine import Engine
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.records import UpdateRecord
from servioticy.ports.change_store import NewServiceObject


def test_the_later_one_waits_while_the_earlier_is_on_its_way() -> None:
    """The broker is away: stored over it at once, the earlier one would be lost in a crash."""
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("t")) or 0
    document = b'{"streams":{"d":{"channels":{"v":{"type":"number"}}}}}'
    platform.changes.create(NewServiceObject("so", tenant, False, document, ("d",), (), 0))
    waits: list[int] = []

    def broker_comes_back(_seconds: float) -> None:
        waits.append(platform.state.progress[0].next_offset)
        platform.state.broker_answers = True

    store = platform.partition_store(argument_names)
    task = Task(
        0,
        store,
        lambda: platform.output(0),
        Engine({}, 10, 10, sleep=broker_comes_back),
    )

    def put(value: int) -> None:
        text = b'{"channels":{"v":{"current-value":%d}},"lastUpdate":7}' % value
        platform.log.append(0, UpdateRecord("so", "d", 7, msgspec.Raw(text)))

    def take() -> None:
        task.take([Row(n, value) for n, value in enumerate(platform.state.log[0])])

    put(1)
    put(2)
    take_until_first = platform.state.log[0][:2]
    task.take([Row(0, take_until_first[0])])
    platform.state.broker_answers = False
    task.take([Row(1, take_until_first[1])])
    assert platform.state.emitted == []
    take()

    values = [bytes(each.update)[34:35] for each in platform.state.emitted]
    assert waits == [2], "the second was not stored before the first was acknowledged"
    assert set(values) == {b"1", b"2"}
