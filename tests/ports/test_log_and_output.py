"""What every Log and every Output promises."""

from __future__ import annotations

import msgspec
from port_builders import PARTITIONS, Messaging, an_update

from servioticy.messaging.records import (
    AcquireRecord,
    DeadLetter,
    DefinitionRecord,
    DeletionRecord,
    EmittedRecord,
    ErasureRecord,
    ReleaseRecord,
)


def test_a_log_has_its_partitions(messaging: Messaging) -> None:
    assert messaging.log.partitions() == PARTITIONS


def test_a_new_partition_ends_at_zero(messaging: Messaging) -> None:
    assert messaging.log.end_offset(1) == 0


def test_appending_tells_the_offset_and_moves_the_end(messaging: Messaging) -> None:
    offsets = [messaging.log.append(1, an_update(n)) for n in range(3)]

    assert offsets == [0, 1, 2]
    assert messaging.log.end_offset(1) == 3
    assert messaging.log.end_offset(0) == 0


def test_records_are_read_as_they_were_appended(messaging: Messaging) -> None:
    records = [
        an_update(1),
        DefinitionRecord("so1", 2, 9),
        DeletionRecord("so1"),
        ErasureRecord("so1", "a", 10),
        ReleaseRecord(("so1", "so2"), 1),
        AcquireRecord(("so1", "so2"), 1, 7),
    ]
    for each in records:
        messaging.log.append(0, each)

    assert messaging.records(0) == records


def test_emitted_updates_are_acknowledged_in_order(messaging: Messaging) -> None:
    output = messaging.output(1)
    updates = [EmittedRecord("so1", "a", 1, 1, n, msgspec.Raw(b'{"v":%d}' % n)) for n in range(5)]

    output.emit(3, updates[:4])
    output.emit(4, [])
    output.emit(9, updates[4:])
    output.flush()

    assert output.acknowledged == 9
    assert messaging.emitted() == updates


def test_nothing_is_acknowledged_at_first(messaging: Messaging) -> None:
    assert messaging.output(0).acknowledged == 0


def test_a_record_is_forwarded_to_another_partition(messaging: Messaging) -> None:
    record = msgspec.structs.replace(an_update(), forwarded=(0, 7))
    output = messaging.output(0)

    output.send_to_log(1, record)
    output.flush()

    assert messaging.records(1) == [record]
    assert messaging.log.end_offset(0) == 0


def test_what_can_never_succeed_goes_to_the_dead_letters(messaging: Messaging) -> None:
    letter = DeadLetter(1, 7, "unreadable", "{")
    output = messaging.output(1)

    output.bury(letter)
    output.flush()

    assert messaging.dead_letters() == [letter]
