"""A trace context goes with its update through everything that follows from it."""

from __future__ import annotations

import json

import msgspec
from neighbours import Neighbours

from servioticy.domain.records import BorderRecord, UpdateRecord, read_record

ONE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-00"


def put(world: Neighbours, at: int, trace: str) -> None:
    body = {"channels": {"v": {"current-value": at}}, "lastUpdate": at}
    update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
    record = UpdateRecord("device", "data", at, update, trace=trace)
    world.append(world.partition_of("device"), record)


def test_what_is_derived_has_the_context_of_its_update_over_borders_too() -> None:
    """Of a batch each has its own, and those that came without one have none."""
    world = Neighbours()
    world.define("provider", "device", "data", middle=("data",))
    world.define("reader", "house", own=("device/middle",))
    world.run()
    for at, trace in ((1, ONE), (2, ""), (3, OTHER)):
        put(world, at, trace)
    world.run()

    told = {(each.stream, each.timestamp): each.trace for each in world.state.emitted}
    assert told == {
        (stream, at): trace
        for stream in ("data", "middle", "own")
        for at, trace in ((1, ONE), (2, ""), (3, OTHER))
    }
    records = [read_record(value) for log in world.state.log for value in log]
    crossed = {each.trace for each in records if isinstance(each, BorderRecord)}
    assert crossed == {ONE, "", OTHER}


def test_without_a_context_nothing_of_it_stands_anywhere() -> None:
    world = Neighbours()
    world.define("provider", "device", "data", middle=("data",))
    world.define("reader", "house", own=("device/middle",))
    world.run()
    put(world, 1, "")
    world.run()

    assert world.state.emitted
    assert not any(b'"trace"' in value for log in world.state.log for value in log)
