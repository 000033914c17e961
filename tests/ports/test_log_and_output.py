"""What every Log and every Output promises."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from port_builders import PARTITIONS, Messaging, an_update

from servioticy.domain.emissions import Emission, emission
from servioticy.domain.records import (
    AcquireRecord,
    DeadLetter,
    DefinitionRecord,
    DeletionRecord,
    EmittedRecord,
    ErasureRecord,
    ReleaseRecord,
    UpdateRecord,
    write,
)
from servioticy.domain.topics import MAX_MESSAGE_BYTES
from servioticy.errors import Rejected
from servioticy.ports.borders import Crossing


def sent(records: Sequence[EmittedRecord]) -> list[Emission]:
    return [emission(each) for each in records]


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


def test_many_records_are_appended_in_their_order(messaging: Messaging) -> None:
    """Those of each partition; one message or a thousand is the same."""
    records = [(n % 3 % 2, an_update(n)) for n in range(3_000)]

    messaging.log.append_all([])
    messaging.log.append_all(records)

    for partition in (0, 1):
        expected = [record for where, record in records if where == partition]
        assert messaging.records(partition) == expected
        assert messaging.log.end_offset(partition) == len(expected)


def test_who_else_appends_is_met_by_ones_own_next_record(messaging: Messaging) -> None:
    """The broker and each API process have a log of their own, over one topic."""
    own, others = messaging.log, messaging.another_log()
    never = float("-inf")
    own.append(0, an_update(1))
    own.append_all([(0, an_update(2)), (1, an_update(3)), (0, an_update(4))])
    assert own.others_at(0) == own.others_at(1) == never

    others.append(0, an_update(5))
    assert own.others_at(0) == never, "not met yet"
    own.append_all([(0, an_update(6)), (1, an_update(7))])

    met = own.others_at(0)
    assert met > never
    assert own.others_at(1) == never
    own.append(0, an_update(8))
    assert own.others_at(0) == met
    others.append_all([(0, an_update(9))])
    own.append(0, an_update(10))
    assert own.others_at(0) > met
    assert others.others_at(0) > never


def test_of_many_records_none_is_appended_where_one_is_too_large(messaging: Messaging) -> None:
    large = msgspec.structs.replace(an_update(), update=msgspec.Raw(b"1" * MAX_MESSAGE_BYTES))

    with pytest.raises(Rejected):
        messaging.log.append_all([(0, an_update()), (0, large)])

    assert messaging.log.end_offset(0) == 0


def test_a_single_record_is_read_at_its_place(messaging: Messaging) -> None:
    """In any order, and where nothing stands there is none."""
    records = [msgspec.structs.replace(an_update(), timestamp=at) for at in range(3)]
    places = [messaging.log.append(1, each) for each in records]

    for number in (2, 0, 1):
        assert messaging.log.record(7, 1, places[number]) == records[number]
    assert messaging.log.record(7, 1, places[-1] + 1) is None
    assert messaging.log.record(7, 0, 0) is None


def test_emitted_updates_are_acknowledged_in_order(messaging: Messaging) -> None:
    output = messaging.output(1)
    updates = [EmittedRecord("so1", "a", 1, 1, n, msgspec.Raw(b'{"v":%d}' % n)) for n in range(5)]

    output.emit(3, sent(updates[:4]))
    output.emit(4, [])
    output.emit(9, sent(updates[4:]))
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
    """Byte for byte, whatever it is: people are to see what came."""
    letters = [
        DeadLetter(1, 7, "unreadable: \ud800", b"{"),
        DeadLetter(1, 8, "unreadable", b"\xff\xfe\x00"),
        DeadLetter(0, 9, "unreadable", b""),
    ]
    output = messaging.output(1)

    for each in letters:
        output.dead_letter(each)
    output.flush()

    found = messaging.dead_letters()
    assert [each.record for each in found] == [each.record for each in letters]
    assert [each.offset for each in found] == [7, 8, 9]


def an_update_of(size: int) -> UpdateRecord:
    """One that takes so many bytes in the log."""
    empty = an_update()
    text = b'{"x":"%s"}'
    rest = len(write(msgspec.structs.replace(empty, update=msgspec.Raw(text % b""))))
    return msgspec.structs.replace(empty, update=msgspec.Raw(text % (b"x" * (size - rest))))


def an_emitted_one_of(size: int, timestamp: int) -> EmittedRecord:
    """One that takes so many bytes in its topic, with its key."""
    text = b'{"x":"%s"}'
    empty = EmittedRecord("so1", "a", 1, 1, timestamp, msgspec.Raw(text % b""))
    rest = len(write(empty)) + len("so1/a")
    return msgspec.structs.replace(empty, update=msgspec.Raw(text % (b"x" * (size - rest))))


def test_the_log_takes_records_up_to_the_limit(messaging: Messaging) -> None:
    """A byte beyond it no waiting helps, and no other record suffers."""
    largest = an_update_of(MAX_MESSAGE_BYTES)

    messaging.log.append(0, largest)
    with pytest.raises(Rejected):
        messaging.log.append(0, an_update_of(MAX_MESSAGE_BYTES + 1))
    messaging.log.append(0, an_update())

    assert [bytes(each.update) for each in messaging.records(0)] == [
        bytes(largest.update),
        bytes(an_update().update),
    ]


def test_records_are_forwarded_up_to_the_limit(messaging: Messaging) -> None:
    output = messaging.output(0)

    output.send_to_log(1, an_update_of(MAX_MESSAGE_BYTES))
    with pytest.raises(Rejected):
        output.send_to_log(1, an_update_of(MAX_MESSAGE_BYTES + 1))
    output.flush()

    assert messaging.log.end_offset(1) == 1


def test_an_update_too_large_to_emit_stops_nobody(messaging: Messaging) -> None:
    """It is stored already. It counts as emitted, and stands in the dead letters."""
    updates = [
        an_emitted_one_of(MAX_MESSAGE_BYTES, 1),
        an_emitted_one_of(MAX_MESSAGE_BYTES + 1, 2),
        an_emitted_one_of(100, 3),
    ]
    output = messaging.output(1)

    output.emit(7, sent(updates))
    output.emit(8, sent([an_emitted_one_of(100, 4)]))
    output.flush()

    assert output.acknowledged == 8
    assert [each.timestamp for each in messaging.emitted()] == [1, 3, 4]
    (letter,) = messaging.dead_letters()
    assert (letter.kind, letter.partition, letter.offset) == ("emitted", 1, 6)
    assert letter.record == write(updates[1])


def crossing(record: UpdateRecord, *partitions: int, offset: int = 0) -> Crossing:
    return Crossing(offset, 0, 0, partitions, write(record))


def test_what_crosses_borders_goes_to_the_log_of_each_partition(messaging: Messaging) -> None:
    """In the order in which it is given, byte for byte; and all of it is acknowledged."""
    records = [an_update(n) for n in range(4)]
    output = messaging.output(1)

    output.emit(3, sent([an_emitted_one_of(100, 1)]), [crossing(each, 0, 1) for each in records])
    output.emit(4, [], [crossing(an_update(5), 1)])
    output.emit(5, sent([an_emitted_one_of(100, 2)]))
    output.flush()

    assert output.acknowledged == 5
    assert not output.has_more
    assert messaging.records(0) == records
    assert messaging.records(1) == [*records, an_update(5)]
    assert [each.timestamp for each in messaging.emitted()] == [1, 2]


def test_what_is_too_large_to_cross_stops_nobody(messaging: Messaging) -> None:
    """It is told once, by the record that it was made from."""
    large = an_update_of(MAX_MESSAGE_BYTES + 1)
    some = [crossing(large, 0, 1, offset=6), crossing(an_update(), 0)]
    output = messaging.output(1)

    output.emit(7, [], some)
    output.flush()

    assert output.acknowledged == 7
    assert (messaging.records(0), messaging.records(1)) == ([an_update()], [])
    (letter,) = messaging.dead_letters()
    assert (letter.kind, letter.partition, letter.offset) == ("log", 1, 6)
    assert letter.whole_bytes == len(write(large))


def test_a_dead_letter_keeps_the_largest_record_whole(messaging: Messaging) -> None:
    """With the longest reason; what is larger than any topic takes is cut, and says so."""
    reason = "\x01" * 3000
    output = messaging.output(0)

    output.dead_letter(DeadLetter(0, 1, reason, b'"' * MAX_MESSAGE_BYTES))
    output.dead_letter(DeadLetter(0, 2, reason, b'"' * (MAX_MESSAGE_BYTES + 1)))
    output.flush()

    whole, cut = messaging.dead_letters()
    assert (len(whole.record), whole.whole_bytes) == (MAX_MESSAGE_BYTES, None)
    assert (len(cut.record), cut.whole_bytes) == (MAX_MESSAGE_BYTES, MAX_MESSAGE_BYTES + 1)


def test_what_was_emitted_is_found_by_its_place(messaging: Messaging) -> None:
    """From an offset of the log on, by whoever: what is computed again ends as it did."""
    for n in range(4):
        messaging.log.append(1, an_update(n))
    placed = [EmittedRecord("so1", "a", 1, 1, n, msgspec.Raw(b"{}"), (n, 0)) for n in range(3)] + [
        EmittedRecord("so1", "b", 1, 1, 2, msgspec.Raw(b"{}"), (2, 1, 0, 3)),
        EmittedRecord("so1", "b", 1, 1, 2, msgspec.Raw(b"{}"), (2, 2, 0, 2**40 + 7)),
        EmittedRecord("so1", "b", 1, 1, 2, msgspec.Raw(b"{}"), (2, 2, -5, 0)),
    ]
    again = EmittedRecord("so1", "a", 1, 1, 9, msgspec.Raw(b"{}"))
    output = messaging.output(1)
    output.emit(3, sent([*placed, again]))
    output.flush()

    found = {first: messaging.output(1).emitted_from(first) for first in (0, 2, 3, 4)}

    assert found == {0: placed, 2: placed[2:], 3: [], 4: []}
    assert messaging.output(0).emitted_from(0) == []
