"""Applications that are not ours, each on its engine, with the same aspects woven in as they load.

A job of PySpark: in its driver, its workers and its Java. A loop that consumes a topic. A topology
of Storm.
"""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from application_builders import Here
from examples import USUAL
from process_walks import alive
from waiting import until

from benchmarks import applications, packages
from command import cli
from monitoring.analysis import analysing, steps
from monitoring.applications import repository
from monitoring.model import Calls, ResourceProfile, RuntimePerformance
from servioticy.embedded import jars
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.errors import SetupError
from servioticy.settings import load

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
WITHOUT_END = ["--runs", "100000", "--pause", "0.05", "--vertices", "5", "--characters", "5000"]


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path / "data")


def known(here: Here) -> set[tuple[str, str]]:
    """What is measured by now: sequences, and purposes."""
    return {
        (each.sequence, each.node.node_purpose)
        for each in here.measured("salesman")
        if isinstance(each, RuntimePerformance)
    }


def inputs(runs: int) -> set[tuple[str, str]]:
    """The same of so many inputs that were taken through all steps."""
    return {(f"salesman:run-{number}", step) for number in range(runs) for step in STEPS}


def measured_until_it_is_stopped(here: Here, package: Path) -> None:
    """It has no end: it is watched as it runs, and what is woven is there from its first input."""
    assert here.deploy(package) == []
    assert here.state("salesman").state == "waiting"
    with here.monitor("salesman") as monitor:
        until(lambda: monitor.poll() is not None or known(here) >= inputs(RUNS), 240)
        assert monitor.poll() is None
        until(lambda: here.state("salesman").stored >= len(inputs(RUNS)))
        state = here.state("salesman")
        assert (state.state, state.starts, state.lost) == ("running", 1, 0)
        monitor.terminate()
        assert monitor.wait(240) == 0
    assert not alive(state.process)
    repository.wish(here.data, "salesman", "stopped")
    assert here.state("salesman").state == "stopped"


def test_a_loop_that_consumes_a_topic_is_measured_until_it_is_stopped(
    here: Here, tmp_path: Path, real_kafka: EmbeddedKafka, topic_prefix: str
) -> None:
    arguments = ["--brokers", real_kafka.bootstrap_servers, "--topic", f"{topic_prefix}inputs"]
    arguments += WITHOUT_END
    package = packages.package(tmp_path / "package", packages.CONSUMER, arguments)
    measured_until_it_is_stopped(here, package)


def test_a_topology_of_storm_is_measured_until_it_is_stopped(here: Here, tmp_path: Path) -> None:
    """Storm is 142 MB that nothing else needs: where it is not here, PROFILE=usual fetches it."""
    settings = load()
    try:
        jars.storm(settings)
    except SetupError:
        if hypothesis.settings.get_current_profile_name() != USUAL:
            pytest.skip("Storm is not here")
        applications.fetch_storm(settings)
    package = packages.package(tmp_path / "package", packages.STORM, WITHOUT_END)
    measured_until_it_is_stopped(here, package)


def test_a_job_of_micro_batches_is_measured_in_all_of_its_processes(
    here: Here, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sequence has the steps of driver and workers; what Java does is told beside them."""
    ends = tmp_path / "ends"
    arguments = ["--runs", str(RUNS), "--pause", "0", "--vertices", "5", "--characters", "5000"]
    arguments += ["--until", str(ends)]
    folder = packages.package(tmp_path / "package", packages.SPARK, arguments, more=JAVA)
    assert here.deploy(folder) == []

    def kinds() -> set[type]:
        return {type(x) for x in here.measured("salesman") if x.node.node_purpose == "tasks"}

    whole = inputs(RUNS)
    with here.monitor("salesman") as monitor:
        until(lambda: monitor.poll() is not None or known(here) >= whole, 400)
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
