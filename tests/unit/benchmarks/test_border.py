"""Whether readers of a public stream got everything is told by what was emitted."""

from __future__ import annotations

import pytest

from benchmarks import border
from benchmarks.attacks.arrivals import Waits
from benchmarks.border.emitted import Faults, faults
from benchmarks.border.measure import Beside, reading
from sandbox import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.model import StreamRef

ONE, ANOTHER = StreamRef("r1", "c"), StreamRef("r2", "c")


@pytest.mark.parametrize(
    ("came", "found"),
    [
        ([2, 3, 4], Faults(0, 0, 0)),
        ([1, 2, 3, 4, 9], Faults(0, 0, 0)),
        ([2, 4], Faults(1, 0, 0)),
        ([2, 3, 3, 4], Faults(0, 1, 0)),
        ([2, 4, 3], Faults(0, 0, 1)),
        ([], Faults(3, 0, 0)),
    ],
)
def test_each_update_is_to_come_once_and_in_order(came: list[int], found: Faults) -> None:
    """Of each stream; what was sent while it was not measured may be there."""
    assert faults({ONE: came, ANOTHER: [2, 3, 4]}, range(2, 5)) == found


def test_what_readers_create_is_a_document() -> None:
    parsed = parse_service_object(reading("so"), "r", argument_names)

    (stream,) = parsed.streams
    assert stream.composite is not None
    assert stream.composite.inputs[0].members == (StreamRef("so", "s0"),)


def test_a_line_tells_of_provider_readers_and_cost() -> None:
    beside = Beside(
        Waits(0.010, 0.020, 0.030),
        Waits(0.040, 0.050, 0.060),
        None,
        Faults(1, 2, 3),
        {"api": 0.0004, "worker": 0.0006},
    )

    told = border.line(10, beside).split(" | ")
    assert told[:5] == ["10", "10.0 20.0", "40.0 50.0", "never", "1, 2, 3"]
    assert told[5] == "1.0 (api 0.4, worker 0.6)"
