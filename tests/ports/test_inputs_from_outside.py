"""What every PartitionStore promises of streams of other tenants, where they are read."""

from __future__ import annotations

import pytest
from border_builders import A, B, Border
from port_builders import Storage, document

from servioticy.domain.model import (
    Grant,
    InputFromOutside,
    LastUpdate,
    ServiceObjectKey,
    StreamRef,
)
from servioticy.ports.borders import Channel, FedReader, StoredInput
from servioticy.ports.change_store import NewGrant
from servioticy.ports.effects import Activate, Delete, EndInputs
from servioticy.ports.put_off import PutOff

OWN = StreamRef("s", "a")


@pytest.fixture
def border(storage: Storage) -> Border:
    return Border(storage)


# Naming.


def test_what_groups_name_of_others_is_open_and_has_the_last_update_stored(
    border: Border,
) -> None:
    """Where it is kept; one's own streams are none of these, nor what nobody has."""
    border.create(border.reader, "s")
    border.activate("x", (), (), 0)
    border.send(5)
    border.send(6, "b")
    nowhere = StreamRef("nowhere", "a")

    border.activate("r", (A, B, OWN, nowhere), (A, OWN, nowhere))

    (found,) = border.store.service_objects(["r"])
    assert found.inputs == {
        A: InputFromOutside(border.provider, True),
        B: InputFromOutside(border.provider, True),
    }
    assert border.last(A) == LastUpdate(5, document(5))
    assert border.last(B) is None
    assert border.fed() == []


@pytest.mark.parametrize("given", [None, "later", "in time", "revoked"])
def test_what_may_not_be_read_is_not_open(border: Border, given: str | None) -> None:
    """As the API knows it at that moment; what comes later is told by the provider's log."""
    changes = border.storage.change_store
    border.create(border.provider, "z")
    z = StreamRef("z", "a")
    border.create(border.reader, "c", z)
    border.activate("z", (), (), 0)
    border.send(5, of="z")

    def give() -> None:
        grant = Grant("g", border.reader, "a", derived_only=True)
        assert changes.grant(NewGrant(ServiceObjectKey(border.provider, "z"), grant, 1), 9)

    if given in ("in time", "revoked"):
        give()
    if given == "revoked":
        assert changes.revoke(border.provider, "g", 2)
    border.activate("c", (z,), (z,), 0)
    if given == "later":
        give()
        border.activate("c", (z,), (z,), 0)

    (found,) = border.store.service_objects(["c"])
    is_open = given == "in time"
    assert found.inputs == {z: InputFromOutside(border.provider, is_open)}
    assert border.last(z, "c") == (LastUpdate(5, document(5)) if is_open else None)


def test_a_stream_without_updates_has_no_last_one(border: Border) -> None:
    border.in_force()

    assert border.last() is None


def test_what_it_named_before_stays_as_it_is_known(border: Border) -> None:
    """What has been stored since comes to it otherwise."""
    border.in_force()
    border.begin(3, 7)
    border.send(9)

    border.activate()

    assert border.last() == LastUpdate(7, document(7))
    assert border.fed() == [("r", 1, False)]


def test_what_is_kept_by_a_later_version_is_known_from_then_on(border: Border) -> None:
    border.activate("x", (), (), 0)
    border.send(5)
    border.activate(kept=())
    assert border.last() is None

    border.activate(kept=(A,))
    assert border.last() == LastUpdate(5, document(5))

    border.activate(kept=())
    assert border.last() is None


def test_what_it_does_not_name_any_more_is_forgotten(border: Border) -> None:
    border.in_force()
    border.begin(3, 7, streams=(A, B))

    border.activate("r", (B,), ())

    (found,) = border.store.service_objects(["r"])
    assert list(found.inputs) == [B]
    assert border.last() is None
    assert (border.fed(), border.fed(stream=B)) == ([], [("r", 1, False)])


def test_a_change_that_comes_again_names_nothing(border: Border) -> None:
    border.in_force()

    border.put(1, Activate("r", 1, 1))

    (found,) = border.store.service_objects(["r"])
    assert set(found.inputs) == {A, B}


def test_who_is_deleted_reads_nothing(border: Border) -> None:
    border.in_force()
    border.begin(3, 7)

    border.put(1, Delete("r"))

    assert border.store.channels(1, [A, B]) == {}
    assert border.last() is None
    assert border.storage.rows("inputs_from_outside") == 0


def test_what_a_change_makes_is_told_without_inputs(border: Border) -> None:
    border.in_force()

    found = border.store.changed([Activate("r", 1, 99)]).get("r")

    assert found is not None
    assert (found.id, found.inputs, found.read_in) == ("r", {}, {})


# Begin and end.


def test_begin_feeds_and_tells_the_last_update(border: Border) -> None:
    border.in_force()
    border.begin(3, 7, streams=(A, B))

    assert border.store.channels(1, [A, B, OWN]) == {
        each: Channel({0: (3, 0)}, (FedReader("r", border.reader, 1),)) for each in (A, B)
    }
    assert border.store.channels(0, [A]) == {}
    assert border.last() == LastUpdate(7, document(7))
    assert border.last(B) is None  # it is only ever a trigger

    border.begin(4)
    assert border.last() is None


@pytest.mark.parametrize("moved_from", [None, 0])
def test_begin_by_an_earlier_change_is_none_of_who_names_the_stream_anew(
    border: Border, moved_from: int | None
) -> None:
    """It was sent once more, and may have been permitted no longer meanwhile."""
    border.in_force()  # by the second change
    border.begin(3, 7, changes=(1,), moved_from=moved_from)
    assert border.fed(1) == []
    border.begin(3, 7, changes=(1,), forwarded=True)
    assert border.last() is None

    border.begin(3, 7, changes=(2,))

    assert border.fed(1) == [("r", 1, False)]
    assert border.last() == LastUpdate(7, document(7))


@pytest.mark.parametrize("offset", [2, 3])
def test_begin_twice_or_late_changes_nothing(border: Border, offset: int) -> None:
    """Of the same partition; places of two cannot be compared."""
    border.in_force()
    border.begin(3, 7)
    border.end(3)
    border.begin(offset, 5)

    assert border.last() == LastUpdate(7, document(7))
    assert border.is_open()

    border.begin(offset, 5, source=1)
    assert border.last() == LastUpdate(5, document(5))


def test_begin_is_for_who_names_the_stream(border: Border) -> None:
    """And for nobody of another tenant, nor from one."""
    border.activate("x", (), (), 0)
    border.begin(3, 7)
    assert border.fed() == []

    border.activate("r", (B,), (B,))
    border.begin(4, 7, streams=(A, B), readers=("r", "gone"))
    assert (border.fed(), border.fed(stream=B)) == ([], [("r", 1, False)])

    border.reader, reader = border.provider, border.reader
    border.begin(5, 8, streams=(B,))
    border.reader, border.provider = reader, reader
    border.begin(5, 8, streams=(B,))
    assert border.last(B) == LastUpdate(7, document(7))


def test_end_closes_and_forgets(border: Border) -> None:
    border.in_force()
    border.begin(3, 7)

    border.end(4)

    assert not border.is_open()
    assert border.last() is None
    assert border.store.channels(1, [A]) == {}
    border.put(1, inputs=[])
    border.activate()
    assert not border.is_open()
    assert border.last() is None, "what may not be read is not looked up"

    border.begin(4, 8)
    assert not border.is_open(), "it is older than the end"
    border.begin(5, 8)
    assert (border.is_open(), border.last()) == (True, LastUpdate(8, document(8)))


def test_last_updates_are_noted_where_they_are_kept(border: Border) -> None:
    border.in_force()
    border.begin(3, 7, streams=(A, B))
    gone = StreamRef("x", "gone")
    text = b'{"v":"\\u0000\\"\\\\"}'

    border.put(1, inputs=[StoredInput(border.reader, "r", e, 9, text) for e in (A, B, gone)])

    known = border.store.last_inputs([("r", each) for each in (A, B, gone)])
    assert known == {("r", A): LastUpdate(9, text)}
    assert border.store.last_inputs([]) == {}


# Marks.


def test_marks_never_fall(border: Border) -> None:
    border.in_force()
    border.begin(3, 7)
    border.put(1, marks={(0, A): (5, 2), (1, A): (0, 1)})
    border.put(1, marks={(0, A): (5, 1), (1, A): (1, 0)})

    assert border.store.channels(1, [A])[A].marks == {0: (5, 2), 1: (1, 0)}

    border.begin(9, 7)
    assert border.store.channels(1, [A])[A].marks == {0: (9, 0), 1: (1, 0)}


def test_marks_of_what_nobody_is_fed_with_go_with_the_next_worker(border: Border) -> None:
    border.in_force()
    border.begin(3, 7)
    border.put(1, marks={(0, A): (5, 0), (0, B): (5, 0)})
    assert border.storage.rows("marks") == 2

    border.store.begin(1)

    assert border.storage.rows("marks") == 1


def test_marks_stay_while_a_begin_waits(border: Border) -> None:
    """Whom it will feed has not been fed yet, and what has come is theirs."""
    border.in_force()
    late = PutOff(4, border.reader, "r", b'{"kind":"begin"', border.reader)
    border.put(1, marks={(0, A): (5, 0)}, put_off=[late])
    border.store.begin(1)
    border.end(9, partition=1)
    assert border.storage.rows("marks") == 1

    border.put(1, taken_up=[late.key])
    border.store.begin(1)

    assert border.storage.rows("marks") == 0


@pytest.mark.parametrize("how", ["ended", "named no more", "deleted"])
def test_marks_go_when_nobody_is_fed_with_the_stream_any_more(border: Border, how: str) -> None:
    border.create(border.reader, "other", A)
    border.in_force()
    border.activate("other", (A,), (), 1)
    border.begin(3, 7, readers=("r", "other"))
    border.begin(3, 7, streams=(B,))

    def leave(reader: str) -> None:
        if how == "ended":
            border.put(1, EndInputs(border.reader, (reader,), (A, B), (0, 9)))
        elif how == "deleted":
            border.put(1, Delete(reader))
        else:
            border.activate(reader, (), ())

    leave("r")
    assert set(border.store.channels(1, [A, B])) == {A}
    assert border.storage.rows("marks") == 1
    leave("other")
    assert border.storage.rows("marks") == 0


# Who else there is.


def test_readers_come_in_order_of_creation(border: Border) -> None:
    for each in ("c", "b"):
        border.create(border.reader, each, A)
        border.activate(each, (A,), ())
    border.in_force()
    border.begin(3, 7, readers=("b", "c", "r"))

    assert [each for each, _, _ in border.fed()] == ["r", "c", "b"]


def test_inputs_are_of_each_reader(border: Border) -> None:
    """Each may have begun at another place."""
    border.create(border.reader, "c", A)
    border.in_force()
    border.activate("c", (A,), (A,))
    border.begin(3, 7)
    border.begin(4, 8, readers=("c",))

    assert (border.last(), border.last(reader="c")) == (
        LastUpdate(7, document(7)),
        LastUpdate(8, document(8)),
    )


def test_a_composite_of_the_same_tenant_has_no_inputs(border: Border) -> None:
    border.create(border.provider, "y", A)
    border.activate("y", (A,), (A,), 0)

    (found,) = border.store.service_objects(["y"])
    assert (found.inputs, found.read_in) == ({}, {})
