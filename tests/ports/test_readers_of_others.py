"""What every PartitionStore promises of who reads a provider's streams from outside."""

from __future__ import annotations

import pytest
from border_builders import A, B, Border
from port_builders import Storage

from servioticy.ports.borders import OutsideReader
from servioticy.ports.effects import Activate, Delete, Release


@pytest.fixture
def border(storage: Storage) -> Border:
    found = Border(storage)
    found.in_force()
    return found


def sources(border: Border, reader: str = "r", partition: int = 0) -> list[tuple[str, int]]:
    """What it reads, and by which change."""
    found = border.store.reading(reader, border.provider, partition)
    return [(each.source.stream, each.change) for each in found]


def read_in(border: Border) -> dict[str, tuple[int, ...]]:
    (found,) = border.store.service_objects(["x"])
    return dict(found.read_in)


def test_who_reads_is_told_in_order_of_creation(border: Border) -> None:
    border.create(border.reader, "c")
    border.create(border.reader, "b")
    border.read(5, A, reader="b", to_partition=0)
    border.read(6, A, B, reader="c")

    assert border.store.outside_readers("x") == [
        OutsideReader("c", border.reader, A, 1, 6, True),
        OutsideReader("c", border.reader, B, 1, 6, True),
        OutsideReader("b", border.reader, A, 0, 5, True),
    ]
    assert border.store.outside_readers("r") == []
    assert read_in(border) == {"a": (0, 1), "b": (1,)}


def test_what_a_later_change_does_not_name_is_not_read_any_more(border: Border) -> None:
    border.read(5, A, B)
    border.read(6, B)
    assert sources(border) == [("b", 6)]

    border.read(7)
    assert sources(border) == []
    assert border.storage.rows("outside_readers") == 0


@pytest.mark.parametrize("change", [5, 4])
def test_what_comes_again_or_late_changes_nothing(border: Border, change: int) -> None:
    border.read(5, A, B)

    border.read(change, A, to_partition=0, is_open=False)
    border.read(4)

    assert {each.partition for each in border.store.outside_readers("x") if each.source == B} == {
        1
    }
    assert sources(border) == [("a", 5), ("b", 5)]


def test_of_several_records_the_last_one_ends_the_change(border: Border) -> None:
    border.read(5, A)
    border.read(6, B, ends=False)
    assert sources(border) == [("a", 5), ("b", 6)]

    border.read(6)
    assert sources(border) == [("b", 6)]


def test_it_is_about_what_is_computed_in_the_partition(border: Border) -> None:
    """What the same provider has elsewhere is told there."""
    border.create(border.provider, "z", public=True)
    border.read(5, A)
    border.put(0, Release(("x",), 1))

    border.read(6)

    assert (sources(border), sources(border, partition=1)) == ([], [("a", 5)])
    assert border.store.reading("r", border.reader, 1) == []


def test_nobody_reads_who_is_gone_or_of_whom_nothing_is_left(border: Border) -> None:
    border.put(1, Delete("r"))
    border.read(5, A)
    border.read(6, A, reader="nobody")
    border.create(border.reader, "c", A)
    border.put(0, Delete("x"))
    border.read(7, A, reader="c")

    assert border.storage.rows("outside_readers") == 0


def test_with_a_service_object_its_readers_go(border: Border) -> None:
    border.read(5, A, B)

    border.put(0, Delete("x"))

    assert border.store.outside_readers("x") == []
    assert border.storage.rows("outside_readers") == 0


def test_what_a_deleted_reader_read_goes_with_what_is_left_of_it(border: Border) -> None:
    """Whatever becomes of the record that says so."""
    border.read(5, A, B)
    border.put(1, Delete("r"))

    border.storage.purge(1)

    assert border.storage.rows("outside_readers") == 0


def test_only_who_may_read_is_sent_to(border: Border) -> None:
    border.read(5, A, B)
    (first, second) = border.store.outside_readers("x")
    assert (first.source, second.source) == (A, B)

    border.put(0, outside=[first._replace(is_open=False)])

    assert border.store.outside_readers("x") == [first._replace(is_open=False), second]
    assert read_in(border) == {"b": (1,)}
    gone = first._replace(source=first.source._replace(stream="gone"))
    border.put(0, outside=[first, second._replace(is_open=False), gone])
    assert read_in(border) == {"a": (1,)}
    assert len(border.store.outside_readers("x")) == 2


def test_what_it_reads_stays_where_others_read(border: Border) -> None:
    """A record is about one reader and one provider."""
    border.create(border.reader, "c", A)
    border.read(5, A)
    border.read(6, A, reader="c")

    border.read(7)

    assert [each.reader for each in border.store.outside_readers("x")] == ["c"]


def test_a_new_version_of_the_provider_leaves_its_readers(border: Border) -> None:
    border.read(5, A)

    border.put(0, Activate("x", 1, 99))

    assert sources(border) == [("a", 5)]
