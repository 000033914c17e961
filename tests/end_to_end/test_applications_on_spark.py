"""A job of PySpark that is not ours: the same aspects in its driver, its workers and its Java."""

from __future__ import annotations

from pathlib import Path

import pytest
from application_builders import Here
from waiting import until

from benchmarks import packages
from command import cli
from monitoring.analysis import analysing, steps
from monitoring.model import Calls, ResourceProfile, RuntimePerformance

JAVA = """
[[aspect]]
language = "java"
pointcut = "org.apache.spark.executor.Executor.TaskRunner.run"
measures = ["runtime", "profile", "count"]
purpose = "tasks"
"""
STEPS = {"creation", "extraction", "paths", "distance", "summary"}
RUNS = 2
KINDS = {RuntimePerformance, ResourceProfile, Calls}


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path / "data")


def test_a_job_of_micro_batches_is_measured_in_all_of_its_processes(
    here: Here, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sequence has the steps of driver and workers; what Java does is told beside them."""
    ends = tmp_path / "ends"
    arguments = ["--runs", str(RUNS), "--pause", "0", "--vertices", "5", "--characters", "5000"]
    arguments += ["--until", str(ends)]
    folder = packages.package(tmp_path / "package", packages.SPARK, arguments, more=JAVA)
    assert here.deploy(folder) == []

    def known() -> set[tuple[str, str]]:
        return {
            (each.sequence, each.node.node_purpose)
            for each in here.measured("salesman")
            if isinstance(each, RuntimePerformance)
        }

    def kinds() -> set[type]:
        return {type(x) for x in here.measured("salesman") if x.node.node_purpose == "tasks"}

    sequences = [f"salesman:run-{number}" for number in range(RUNS)]
    whole = {(sequence, step) for sequence in sequences for step in STEPS}
    with here.monitor("salesman") as monitor:
        until(lambda: monitor.poll() is not None or known() >= whole, 400)
        until(lambda: monitor.poll() is not None or kinds() >= KINDS, 120)
        ends.touch()
        assert monitor.wait(240) == 0
    found = here.measured("salesman")
    python = [
        each
        for each in found
        if isinstance(each, RuntimePerformance) and each.node.node_purpose in STEPS
    ]

    assert {(each.sequence, each.node.node_purpose) for each in python} == whole
    nodes = {
        purpose: {x.node.node_id for x in python if x.node.node_purpose == purpose}
        for purpose in ("creation", "distance")
    }
    assert not nodes["creation"] & nodes["distance"]
    java = [each for each in found if each.node.node_purpose == "tasks"]
    assert {type(each) for each in java} == KINDS
    assert all(each.place.endswith(".run") for each in java)
    assert any(each.node.node_purpose == "jvm" for each in found)
    analysis = analysing.analysed(steps.read(here.place("salesman").files()))
    assert {each.what for each in analysis.runtime} == {*STEPS, "output", "tasks"}
    assert analysis.skipped == 0
    words = ["monitoring", "analyse", "--application", "salesman", "--data", str(here.data)]
    assert cli.main(words) == 0
    assert "extraction to paths" in capsys.readouterr().out
