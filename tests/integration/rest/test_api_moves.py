"""Changes that join components: Service Objects move to another partition."""

from __future__ import annotations

import pytest
from api_builders import SIMPLE, Caller, Served
from changing_documents import composite, records, replace, versions

from servioticy.domain.records import (
    AcquireRecord,
    DefinitionRecord,
    ReleaseRecord,
)


def test_new_groups_are_held_to_the_rules_of_creation(
    served: Served, alice: Caller, bob: Caller
) -> None:
    so, own, private = alice.create(), alice.create(), bob.create()

    assert replace(alice, so, composite("g", g=(["nothing"], "a"))).status_code == 400
    assert replace(alice, so, composite("g", g=([private], "a"))).status_code == 401
    assert replace(alice, so, composite("g", g=([own], "nothing"))).status_code == 404
    assert versions(alice, so) == [(1, True)]
    assert replace(alice, so, composite("g", g=([own], "a"))).status_code == 200


def test_a_change_may_join_components(served: Served, alice: Caller) -> None:
    """So1 in partition 0 comes to read so2 in partition 1, which moves."""
    so1, so2 = alice.create(), alice.create()
    replace(alice, so1, composite("g", g=([so2], "a")))

    moved = ReleaseRecord((so2,), 0)
    assert served.platform.records(1, 1) == [(1, moved)] or records(served, ReleaseRecord)
    (acquired,) = records(served, AcquireRecord)
    (released,) = records(served, ReleaseRecord)
    assert acquired.service_objects == released.service_objects
    order = [
        type(record)
        for _, record in served.platform.records(released.to_partition)
        if not isinstance(record, DefinitionRecord) or record.version == 2
    ]
    assert order == [AcquireRecord, DefinitionRecord]


def test_a_large_move_is_told_in_portions(
    served: Served, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record has a largest size; a component need not."""
    monkeypatch.setattr("servioticy.changes.MAX_MOVED", 1)
    first, second = alice.create(), alice.create()
    streams = {"version": "0.2.0", "streams": SIMPLE["streams"]} if "streams" in SIMPLE else SIMPLE
    reading = composite("g", g=([second], "a"))
    third = alice.create(streams)
    replace(alice, third, reading)
    replace(alice, first, composite("g", g=([third], "out")))

    moved = [r.service_objects for r in records(served, ReleaseRecord)]
    assert all(len(each) == 1 for each in moved)
    assert len(moved) == len(records(served, AcquireRecord)) > 0
