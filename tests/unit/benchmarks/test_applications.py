"""MOSAIC's evaluation: the salesman, and the figures that are drawn of it."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import applications, publishing
from benchmarks.salesman import salesman
from monitoring.analysis.steps import Step
from monitoring.applications import package
from servioticy.settings import Settings


@pytest.mark.parametrize("parts", [1, 2, 3, 9])
def test_the_shortest_path_is_found_however_the_paths_are_shared_out(parts: int) -> None:
    given = salesman.create("run-1", 6, 2_000)
    extracted = salesman.extract(given)
    nodes = extracted["nodes"]
    shares = salesman.paths(extracted, parts)
    told = salesman.summarize([salesman.distance(each) for each in shares])
    every = [[0, *rest] for rest in itertools.permutations(range(1, 6))]

    assert (len(nodes), len(shares)) == (6, parts)
    assert sorted(path for each in shares for path in each["paths"]) == sorted(every)
    assert told["least"] == pytest.approx(
        min(
            sum(math.dist(nodes[a], nodes[b]) for a, b in itertools.pairwise(path))
            for path in every
        )
    )
    assert told["id"] == "run-1"
    assert 1_500 < len(given["text"]) < 2_500
    assert salesman.create("run-1", 6, 2_000) == given


def test_it_is_a_package_for_each_engine(tmp_path: Path) -> None:
    for engine in applications.ENTRIES:
        folder = applications.package(tmp_path / engine, engine, ["--runs", "1"])
        read = package.read(folder)
        assert (read.engine, read.entry) == applications.ENTRIES[engine]
        assert read.arguments == ("--runs", "1")
        assert [each.purpose for each in read.aspect] == [
            *("creation", "extraction", "paths", "distance", "summary")
        ]


def test_one_run_of_it_has_a_sequence_of_all_steps() -> None:
    arguments = ["--runs", "2", "--pause", "0", "--vertices", "5", "--characters", "5000"]
    steps = applications.measured(Settings(), "loop", arguments)

    assert len(steps) == 2 * (3 + 4 + 1)
    assert {each.sequence for each in steps} == {"salesman:run-0", "salesman:run-1"}


def test_figures_have_a_row_for_each_engine_and_scenario() -> None:
    steps = [
        Step("extraction", "n/1", 0, 2_000_000, "a"),
        Step("paths", "n/2", 5_000_000, 6_000_000, "a"),
    ]
    found = {"python, 1 s": steps, "pyspark, 1 s": steps}
    runtime, latency, total = applications.figures(found).values()

    assert [(each.what, each.node, each.middle) for each in runtime] == [
        ("extraction", "pyspark, 1 s", 2_000_000),
        ("extraction", "python, 1 s", 2_000_000),
        ("paths", "pyspark, 1 s", 1_000_000),
        ("paths", "python, 1 s", 1_000_000),
    ]
    assert {(each.what, each.middle) for each in latency} == {("extraction to paths", 3_000_000)}
    assert {(each.what, each.middle) for each in total} == {
        ("all runs", 6_000_000),
        ("an input", 6_000_000),
    }
    for text in applications.drawn(found).values():
        words = "".join(ElementTree.fromstring(text).itertext())
        assert "python, 1 s" in words


def test_what_publishers_hold_is_told_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    publishing.weaving(["json.dumps", "json.loads"], rounds=1)
    publishing.publishing(Settings(), 1_000)
    told = capsys.readouterr().out.splitlines()

    assert told[0].startswith("to weave 2 functions: ")
    assert [each.split()[0] for each in told[1:-1]] == list(publishing.ALONE)
    assert told[-1].startswith("load of the machine: ")
