"""What crosses from tenant to tenant is what was made, in worlds that change and die at random."""

from __future__ import annotations

import pytest
from changing_law import assert_lawful
from crossing_worlds import Play, a_world
from hypothesis import given, settings
from hypothesis import strategies as st

PUTS_OFF = pytest.mark.parametrize("puts_off", [False, True], ids=["in-turn", "puts-off"])
CYCLES = st.booleans()


@PUTS_OFF
@settings.get_profile("changes")
@given(data=st.data(), cycles=CYCLES)
def test_what_crosses_borders_is_what_was_made(data, cycles: bool, puts_off: bool) -> None:
    """Readers come, go, move and join; permissions begin and end; everything dies at times."""
    world = a_world(data.draw, puts_off=puts_off)
    Play(data.draw, world, data.draw(st.integers(2, 3)), data.draw(st.integers(3, 6)), cycles).go(
        data.draw(st.integers(10, 60))
    )
    assert_lawful(world)


@PUTS_OFF
@settings.get_profile("changes")
@given(data=st.data(), cycles=CYCLES)
def test_readers_that_move_miss_nothing(data, cycles: bool, puts_off: bool) -> None:
    """Of two tenants, whose objects join to fewer and fewer components, while others send."""
    world = a_world(data.draw, puts_off=puts_off)
    play = Play(data.draw, world, 2, data.draw(st.integers(5, 8)), cycles)
    play.go(data.draw(st.integers(20, 60)), Play.MOVES)
    assert_lawful(world)
