"""The paper's application as composite streams: it finds the same, and its steps are measured."""

from __future__ import annotations

from itertools import pairwise

import pytest
from running_platform import RunningPlatform

from benchmarks import applications
from benchmarks.applications import Size
from benchmarks.salesman import salesman
from benchmarks.travelling import LEVELS, Travelling
from command import found
from servioticy.domain.model import StreamRef
from servioticy.settings import changed, load

RUNS, VERTICES, CHARACTERS, PARTS = 2, 5, 20_000, 3
TRIES = 5
"""On a machine that is busy an update may be computed again; then its steps are unclear."""


def least(number: int) -> float:
    """What the salesman finds without any streams."""
    given = salesman.create(f"run-{number}", VERTICES, CHARACTERS)
    parts = salesman.paths(salesman.extract(given), PARTS)
    return float(salesman.summarize([salesman.distance(each) for each in parts])["least"])


def test_streams_find_what_the_salesman_finds_and_all_steps_are_measured(
    platform: RunningPlatform,
) -> None:
    """The program that sends inputs, and the platform, have one sequence for each."""
    settings = found.of(changed(load(), data=str(platform.data)))
    size = Size(RUNS, VERTICES, CHARACTERS, PARTS)
    streams = Travelling(settings, PARTS, platform.token)
    try:
        for _ in range(TRIES):
            steps = applications.of_streams(settings, streams, size, 0.01)
            if len(steps) == RUNS * (1 + len(LEVELS)):
                break
    finally:
        streams.close()
    history = platform.updates(StreamRef(streams.service_object, "summary"))
    values = [each["channels"]["least"]["current-value"] for each in history]

    assert values[:RUNS] == [pytest.approx(least(number)) for number in range(RUNS)]
    for number in range(RUNS):
        mine = [each for each in steps if each.sequence == f"salesman:run-{number}"]
        ordered = sorted(mine, key=lambda each: each.start)
        assert [each.purpose for each in ordered] == ["creation", *LEVELS]
        assert all(a.end <= b.start for a, b in pairwise(ordered))
    assert len({each.node.split("/")[1] for each in steps}) == len({"salesman", "pipeline"})
    assert not (platform.data / "aspects.toml").exists()
