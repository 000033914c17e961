"""Work of one transaction: cut anywhere, also between the trees of one record."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from engine_builders import D, document, logged
from hypothesis import given
from hypothesis import strategies as st

from pipeline.work import Forwarded, LoggedUpdate, Marked, Root, Work
from servioticy.domain.model import InputRef, StreamRef
from servioticy.domain.records import BorderRecord, BorderUpdate, NamedReader, Source, write
from servioticy.ports.put_off import PutOff, TreeKey

X = StreamRef("x", "d")


def an_input(offset: int, tenant: int, *readers: str) -> LoggedUpdate:
    """A tree of a record that has come over a border."""
    names = readers or (f"r{tenant}",)
    updates = tuple(
        BorderUpdate("x", name, 7, (), msgspec.Raw(document(7))) for name in ("d", "e")
    )
    record = write(BorderRecord(Source(0, 3), 1, updates))
    roots = [Root(InputRef(X, tenant), 7, document(7), (2**40 + tenant,))]
    return LoggedUpdate(
        offset, tenant, roots, record, tree=tenant, readers=dict.fromkeys(names, (0,))
    )


def marked(offset: int) -> Marked:
    return Marked(offset, 0, X, (offset, 0))


def whole() -> Work:
    """The trees of a record at 4, of which one is put off and one left out, between updates."""
    updates = [logged(3, 1), *(an_input(4, tenant) for tenant in (1, 2, 5)), logged(5, 2)]
    return Work(
        updates,
        TreeKey(6),
        [an_input(4, 3).as_put_off()],
        (),
        [Forwarded(3, 1, 9), Forwarded(4, 1, 10)],
        [marked(4)],
        [an_input(4, 4)],
    )


def test_pieces_end_where_the_next_one_begins() -> None:
    pieces = whole().cut(2, 3)

    assert [[each.key for each in piece.updates] for piece in pieces] == [
        [(3, 0), (4, 1)],
        [(4, 2)],
        [(4, 5), (5, 0)],
    ]
    assert [each.end for each in pieces] == [TreeKey(4, 2), TreeKey(4, 5), TreeKey(6)]
    assert [[each.key for each in piece.put_off] for piece in pieces] == [[], [(4, 3)], []]
    assert [[each.key for each in piece.behind] for piece in pieces] == [[], [(4, 4)], []]


def test_what_concerns_all_of_a_record_goes_with_its_end() -> None:
    """Else its other trees would be taken for repeats after a crash."""
    pieces = whole().cut(2, 3)

    assert [[each.offset for each in piece.forwarded] for piece in pieces] == [[3], [], [4]]
    assert [[each.offset for each in piece.marked] for piece in pieces] == [[], [], [4]]
    assert pieces[2].marks == {(0, X): (4, 0)}


@given(st.lists(st.integers(0, 6), max_size=4))
def test_however_it_is_cut_everything_is_in_one_piece(places: list[int]) -> None:
    work = whole()
    pieces = work.cut(*[each for each in places if each <= len(work.updates)])

    for name in ("updates", "put_off", "forwarded", "marked", "behind"):
        parts = [each for piece in pieces for each in getattr(piece, name)]
        assert parts == list(getattr(work, name))
    ends = [each.end for each in pieces]
    assert ends == sorted(set(ends))
    assert ends[-1] == work.end
    for piece, following in pairwise(pieces):
        assert all(each.key < piece.end for each in piece.updates)
        assert all(each.key >= piece.end for each in following.updates)


def test_late_work_is_cut_with_the_records_that_need_no_computing() -> None:
    updates = [an_input(4, 1), an_input(4, 2), logged(7, 1)]
    late = [each.as_put_off() for each in (an_input(4, 1), an_input(4, 2), logged(6, 9))]
    late.append(logged(7, 1).as_put_off())

    pieces = Work(updates, TreeKey(9), (), late).cut(1, 2)

    assert [[each.key for each in piece.late] for piece in pieces] == [
        [(4, 1)],
        [(4, 2)],
        [(6, 0), (7, 0)],
    ]
    assert {each.end for each in pieces} == {TreeKey(9)}


def test_who_is_put_off_is_so_in_order_with_the_others() -> None:
    found = whole().without([1, 5])

    assert [each.key for each in found.updates] == [(4, 2)]
    assert [each.key for each in found.put_off] == [(3, 0), (4, 1), (4, 3), (4, 5), (5, 0)]
    assert [each.tenant for each in found.put_off] == [1, 1, 3, 5, 1]


def test_an_update_is_put_off_as_it_stands_in_the_log() -> None:
    update = LoggedUpdate(5, 1, [Root(D, 7, document(7))], b"the record")

    assert not update.is_input
    assert update.as_put_off() == PutOff(5, 1, "so", b"the record")
    assert update.service_objects == ("so",)


def test_of_what_came_over_a_border_its_part_is_put_off() -> None:
    tree = an_input(4, 2, "r", "s")

    found = tree.as_put_off()

    assert (found.key, found.tenant, found.service_object) == (TreeKey(4, 2), 2, "r")
    record = msgspec.json.decode(found.record, type=BorderRecord)
    assert [each.origin for each in record.updates] == [X]
    assert record.readers == (NamedReader("r", (0,)), NamedReader("s", (0,)))
    assert tree.size == len(document(7))


@pytest.mark.parametrize("name", ["updates", "put_off", "late", "behind"])
def test_work_is_empty_where_there_is_nothing_but_progress(name: str) -> None:
    nothing = Work((), TreeKey(6), forwarded=[Forwarded(3, 1, 9)], marked=[marked(4)])
    assert nothing.is_empty

    some = [logged(3, 1)] if name in {"updates", "behind"} else [logged(3, 1).as_put_off()]
    assert not nothing._replace(**{name: some}).is_empty
