"""MOSAIC's evaluation: the salesman, and the figures that are drawn of it."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from benchmarks import applications, packages, publishing, travelling
from benchmarks.salesman import salesman
from monitoring.analysis.steps import Step
from monitoring.applications import package
from monitoring.configuration import parsed
from monitoring.model import Node, RuntimePerformance
from servioticy.settings import Settings

STEPS = ["creation", "extraction", "paths", "distance", "summary"]
NODE = "here/salesman/1"


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
    for engine in packages.ENTRIES.keys() - {packages.STORM}:
        chosen = {"A_TOKEN": 'se"cret'}
        folder = packages.package(tmp_path / engine, engine, ["--runs", "1"], environment=chosen)
        read = package.read(folder)
        assert (read.engine, read.entry) == packages.ENTRIES[engine]
        assert read.arguments == ("--runs", "1")
        assert read.environment == chosen
        purposes = [each.purpose for each in read.aspect]
        assert purposes[:5] == STEPS
        assert purposes[5:] == (["output"] if engine == packages.SPARK else [])


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


def test_storm_has_aspects_of_the_same_purposes() -> None:
    """Its package needs Storm's jars, which nobody has who has not asked for them."""
    text = (packages.SALESMAN / "storm" / "aspects.toml").read_bytes()
    aspects = parsed(text).aspect

    assert [each.purpose for each in aspects] == STEPS
    assert {each.language for each in aspects} == {"java"}
    assert all(each.sequence for each in aspects)


def test_an_output_with_nothing_to_sum_up_is_told_apart() -> None:
    """Its runtime says nothing of the application: the paper's Figure 5e is distorted by such."""
    steps = [
        Step("output", NODE, 0, 100, "x"),
        Step("summary", NODE, 10, 20, "a"),
        Step("output", NODE, 200, 300, "y"),
        Step("summary", "elsewhere/salesman/2", 210, 220, "b"),
    ]

    assert [each.purpose for each in applications.told_apart(steps)] == [
        *("output", "summary", "output, idle", "summary")
    ]


def a_call(start: int, sequence: str, *links: str, purpose: str = travelling.TRANSFORM) -> bytes:
    node = Node("here/pipeline/7", purpose)
    step = RuntimePerformance(node, "f", start, start + 5, sequence, links=links)
    return msgspec.json.encode(step)


def test_steps_of_streams_are_told_apart_by_the_levels_of_a_tree() -> None:
    """A call about several inputs is a step of each."""
    traces = "a" * 24
    first, second = (f"{traces}{number:08x}" for number in (0, 1))
    lines = [
        *(a_call(start, first) for start in (40, 10, 30, 20)),
        *(
            a_call(start, "own", f"{second}-{'b' * 16}", f"{'d' * 32}-{'b' * 16}")
            for start in (50, 60, 70, 80)
        ),
        a_call(15, first, purpose="another"),
        a_call(15, "c" * 32),
    ]
    found = travelling.told_apart(lines, traces, "salesman")

    assert found.unclear == 0
    assert [(each.purpose, each.start, each.sequence) for each in found.steps] == [
        *((level, 10 * (1 + at), "salesman:run-0") for at, level in enumerate(STEPS[1:])),
        *((level, 50 + 10 * at, "salesman:run-1") for at, level in enumerate(STEPS[1:])),
    ]


def test_an_input_that_was_computed_again_is_unclear() -> None:
    """Which of its calls was which step nobody knows; it is counted, and left out."""
    traces = "a" * 24
    lines = [a_call(start, f"{traces}00000000") for start in range(5)]

    assert travelling.told_apart(lines, traces, "salesman") == travelling.Found([], 1)


def test_latencies_of_one_machine_have_one_clock() -> None:
    steps = [Step("paths", NODE, 0, 1, "a"), Step("distance", NODE, 5, 6, "a")]

    assert applications.skew(steps) == "one machine, one clock"
    far = Step("summary", "there/storm/1", 9, 10, "a")
    assert applications.skew([*steps, far]) == "here and there: clocks unknown"
