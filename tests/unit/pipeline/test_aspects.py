"""Something may be put around the stages, and the stages do not notice."""

from __future__ import annotations

import pytest
from engine_builders import evaluators
from memory import MemoryPlatform
from oracle import Composite, Object
from put_off_runs import append
from serial_order import define

from pipeline.aspects import STAGES, around, timed
from pipeline.engine import Engine
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names


class Counting:
    """An aspect that notes which stage is entered and left."""

    def __init__(self, name: str, noted: list[str]) -> None:
        self._name, self._noted = name, noted

    def __call__(self, stage_name, stage):
        def call(*arguments):
            self._noted.append(f"{self._name} {stage_name}")
            return stage(*arguments)

        return call


def computed(stages) -> MemoryPlatform:
    """A platform on which an update and what follows from it was computed by these stages."""
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("t"))
    thing = Object("so", ("d",), (Composite("c", ("d",), None),))
    define(thing, {("so", "c"): "function(d){return 1}"}, tenant, platform)
    append(platform, [(("so", "d"), 1, 1)])
    engine = Engine(evaluators(), 10, 10, stages=stages)
    task = Task(0, platform.partition_store(argument_names), lambda: platform.output(0), engine)
    task.take([Row(at, value) for at, value in enumerate(platform.state.log[0])])
    return platform


def test_aspects_see_every_call_and_change_nothing() -> None:
    """The one that is put around last is the outermost."""
    noted: list[str] = []
    stages = around(around(STAGES, Counting("inner", noted)), Counting("outer", noted))

    assert computed(stages).state.updates == computed(STAGES).state.updates
    assert noted == [
        f"{each} {stage}"
        for stage in ("dispatch", "fetch", "transform", "emit")
        for each in ("outer", "inner")
    ]


def test_a_timed_stage_notes_its_seconds_though_it_fails() -> None:
    noted: list[tuple[str, float]] = []

    def broken(*_arguments):
        raise ZeroDivisionError

    stages = timed(
        STAGES._replace(fetch=broken), lambda name, seconds: noted.append((name, seconds))
    )
    with pytest.raises(ZeroDivisionError):
        stages.fetch([], [], None, {}, None, None)  # type: ignore[arg-type]

    ((name, seconds),) = noted
    assert name == "fetch"
    assert seconds >= 0
