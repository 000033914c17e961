"""What crosses from tenant to tenant: paths over borders, and what a document reads of others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from engine_builders import a_service_object

from servioticy.domain.borders import (
    BORDER,
    borders,
    entered,
    kept,
    members,
    outside_inputs,
    reading,
    revision_over,
    with_inputs,
)
from servioticy.domain.model import InputFromOutside, InputRef, ServiceObject, StreamRef

X, Y, OWN = StreamRef("x", "d"), StreamRef("y", "d"), StreamRef("so", "d")
MINE = StreamRef("mine", "e")


def a_reader(**composites: tuple[str, ...]) -> ServiceObject:
    """It has the groups `gx`, `gy` and `both` of others, and `gm` of its own tenant's."""
    groups = {
        "gx": (["x"], "d"),
        "gy": (["y"], "d"),
        "both": (["y", "x"], "d"),
        "gm": (["mine"], "e"),
    }
    return a_service_object(composites, groups=groups, sequence=4)


def open_(*refs: StreamRef, provider: int = 7) -> dict[StreamRef, InputFromOutside]:
    return {each: InputFromOutside(provider, is_open=True) for each in refs}


def test_a_path_tells_how_many_borders_it_has_crossed() -> None:
    assert borders(()) == borders((0, 5, 2**40 - 1)) == 0
    assert borders(entered((1, 2), 9)) == 1
    assert borders((*entered(entered((3,), 9), 2), 4)) == 2


def test_what_is_sent_over_a_border_is_no_revision_whatever_it_says() -> None:
    """What a provider's windows tell again is one."""
    document = b'{"channels":{},"lastUpdate":9,"revision":2}'

    assert revision_over(document, entered((), 9)) is None
    assert revision_over(document, entered((0, 0), 9)) == (2, False, False)
    assert revision_over(b'{"channels":{},"lastUpdate":9}', entered((0, 0), 9)) is None


@pytest.mark.parametrize("reader", [0, 1, 2**31 - 1])
def test_places_that_enter_differ_from_all_others(reader: int) -> None:
    """From those that other readers enter, and those of what is woken by what entered before."""
    path = entered((0,), reader)
    others = [(0, 0), entered((0,), reader + 1), entered((), reader), (*entered((), reader), 0)]

    assert path not in others
    assert path[-1] == BORDER + reader
    assert path[-1] <= 2**53, "JavaScript has it exactly"


def test_members_are_all_that_groups_name_each_once() -> None:
    assert members(a_reader().definition) == (X, Y, MINE)


@pytest.mark.parametrize(
    ("reads", "found"),
    [
        (("gx",), ()),
        (("both",), ()),
        (("gx", "d"), (X, OWN)),
        (("gx", "both"), (X, Y)),
        (("c", "gx"), ()),
    ],
    ids=str,
)
def test_kept_is_what_is_read_beside_another_trigger(
    reads: tuple[str, ...], found: tuple[StreamRef, ...]
) -> None:
    """The only input is always the trigger; what a composite made itself triggers nothing."""
    assert kept(a_reader(c=reads).definition) == found


def test_what_one_composite_keeps_is_kept() -> None:
    assert set(kept(a_reader(a=("gx",), b=("gx", "gm"), c=("gy",)).definition)) == {X, MINE}


def test_inputs_are_known_by_who_reads_them() -> None:
    reader = replace(a_reader(c=("both", "gm", "d")), inputs=open_(X, Y))

    (_simple, composite) = with_inputs(reader).definition.streams

    assert composite.composite is not None
    assert [each.members for each in composite.composite.inputs][:3] == [
        (InputRef(Y, 4), InputRef(X, 4)),
        (MINE,),
        (OWN,),
    ]
    assert InputRef(X, 4).source == X


def test_what_may_not_be_read_is_no_input() -> None:
    closed = {X: InputFromOutside(7, is_open=False)}
    reader = replace(a_reader(c=("both", "d")), inputs=open_(Y) | closed)

    (_simple, composite) = with_inputs(reader).definition.streams

    assert composite.composite is not None
    assert composite.composite.inputs[0].members == (InputRef(Y, 4),)
    assert list(outside_inputs(with_inputs(reader))) == [(InputRef(Y, 4), 7)]


def test_who_reads_nothing_of_others_stays_as_it_is() -> None:
    reader = a_reader(c=("gm",))

    assert with_inputs(reader) is reader
    assert list(outside_inputs(reader)) == []


def test_an_input_is_another_stream_for_each_reader() -> None:
    one, other = InputRef(X, 1), InputRef(X, 2)

    assert len({one, other, X, InputRef(X, 1)}) == 3
    assert one == InputRef(X, 1)
    assert one != X
    assert one != other
    assert str(one) == "x/d"


def test_reading_are_the_composites_that_read_one_of_these() -> None:
    reader = a_reader(a=("gx",), b=("gm",), c=("both", "d"), e=("gy",))

    assert [each.ref.stream for each in reading(reader, {X})] == ["a", "c"]
    assert [each.ref.stream for each in reading(reader, ())] == []
