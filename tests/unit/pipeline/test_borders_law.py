"""Whatever happens: each tenant has what follows from its own log, and of others' streams it gets
all that their trees made, each once, in order."""

from __future__ import annotations

import os

import pytest
from changing_world import assert_lawful
from crossing_worlds import Play, a_world
from hypothesis import given, settings
from hypothesis import strategies as st

HUNTS = pytest.mark.skipif(
    "EXAMPLES" not in os.environ,
    reason="finds again what test_borders_found.py has that is still to be mended: make property",
)


@HUNTS
@settings.get_profile("changes")
@given(data=st.data())
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("cycles", [False, True], ids=["trees", "cycles"])
def test_what_crosses_borders_is_what_was_made(data, partitions: int, cycles: bool) -> None:
    """Readers come, go, move and join; permissions begin and end; everything dies at times."""
    world = a_world(data.draw, partitions)
    Play(data.draw, world, data.draw(st.integers(2, 3)), data.draw(st.integers(3, 6)), cycles).go(
        data.draw(st.integers(10, 60))
    )
    assert_lawful(world)


@HUNTS
@settings.get_profile("changes")
@given(data=st.data())
@pytest.mark.parametrize("cycles", [False, True], ids=["trees", "cycles"])
def test_readers_that_move_miss_nothing(data, cycles: bool) -> None:
    """Of two tenants, whose objects join to fewer and fewer components, while others send."""
    world = a_world(data.draw, 3)
    play = Play(data.draw, world, 2, data.draw(st.integers(5, 8)), cycles)
    play.go(data.draw(st.integers(20, 60)), Play.MOVES)
    assert_lawful(world)
