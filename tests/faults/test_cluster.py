"""A cluster of several machines: what is sent through its balancer, while machines are cut off."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from examples import by_hand
from running_cluster import RunningCluster
from running_platform import SECONDS_TO_RECOVER, until
from steady_traffic import DEVICE, Traffic

from command.cluster import machines, network
from command.cluster.disks import CHECKOUT
from servioticy.errors import SetupError

pytestmark = pytest.mark.timeout(1200)

DEVICES = 4
GIVEN_UP = "Lost executor"
"""What Spark says of one that is silent for 20 s."""
WORKING = "a worker that has claimed a partition"
usual = by_hand("each waits for what notices the cut: half a minute")
PROGRESS = "SELECT sum(next_offset)::bigint FROM progress"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    try:
        network.alone([])
    except SetupError as error:
        pytest.skip(str(error))
    running = RunningCluster(tmp_path_factory.mktemp("cluster") / "data")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def traffic(cluster: RunningCluster) -> Iterator[Traffic]:
    found = Traffic(cluster, DEVICES)
    yield found
    found.end()


@pytest.fixture(autouse=True)
def healed(cluster: RunningCluster) -> Iterator[None]:
    """Whatever a test has cut, and however it ends."""
    yield
    cluster.heal()


def test_what_a_client_sends_comes_computed_to_a_socket(traffic: Traffic) -> None:
    """Through the balancer, two processes of the API, two workers and two of delivery."""
    traffic.wait_for_more()


def test_a_worker_has_neither_the_checkout_nor_others_files(cluster: RunningCluster) -> None:
    for each in machines.WORKERS:
        disk = Path(f"/proc/{cluster.pids()[each]}/root")
        for hidden in (CHECKOUT, cluster.data / "cluster"):
            assert not os.listdir(disk / hidden.relative_to("/"))
        assert [*map(str, (disk / "mnt").iterdir())] == [str(disk / "mnt" / each)]


CUTS = {
    "a worker": (WORKING,),
    "a worker and the store": (WORKING, "store"),
    "delivery and the store": ("delivery-1", "store"),
}


@usual
@pytest.mark.parametrize("who", CUTS)
def test_whoever_is_cut_off_the_others_go_on(
    who: str, cluster: RunningCluster, traffic: Traffic
) -> None:
    """Before it is healed; and what is healed harms nobody."""
    _assert_they_go_on(who, CUTS[who], cluster, traffic)


@usual
def test_an_executor_that_is_given_up_and_not_dead_loses_its_partition(
    cluster: RunningCluster, traffic: Traffic
) -> None:
    """It is cut off from the driver alone, and computes on for as long as Spark waits; then the
    master has it ended, and the task that has waited for its claim goes on."""
    traffic.wait_for_more()
    computing = cluster.computing()[0]
    given_up = cluster.log_of("driver").count(GIVEN_UP)

    cluster.cut(computing, "driver")
    until(lambda: cluster.log_of("driver").count(GIVEN_UP) > given_up, SECONDS_TO_RECOVER)
    seconds = traffic.wait_for_more()
    assert computing not in cluster.computing()
    cluster.heal()

    _tell("a worker and the driver", back=seconds, healed=traffic.wait_for_more())


@usual
def test_a_standby_takes_over_and_nothing_acknowledged_is_lost(
    cluster: RunningCluster, traffic: Traffic
) -> None:
    """It has missed the newest commits of the pipeline; the old primary is fenced, and alive."""
    acknowledged = cluster.create(DEVICE)
    cluster.cut("store", "standby")
    traffic.wait_for_more()
    with ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(cluster.request, "POST", "/", DEVICE)  # as nobody confirms it
        before = cluster.ask(0, PROGRESS)
        assert before > cluster.ask(1, PROGRESS)  # what would be lost, without the log

        cluster.promote()
        seconds = traffic.wait_for_more()

        assert cluster.ask(0, "SHOW transaction_read_only") == [("on",)]
        status, _, body = waiting.result()
    for id_ in [acknowledged, *([json.loads(body)["id"]] if status == 201 else [])]:
        assert cluster.request("GET", f"/{id_}")[0] == 200
    _tell("the standby", back=seconds)


@usual
def test_a_worker_without_postgres_leaves_its_partition_to_another(
    cluster: RunningCluster, traffic: Traffic
) -> None:
    """Postgres is where the standby was by now, and Kafka where it always was."""
    _assert_they_go_on("a worker and Postgres", (WORKING, "standby"), cluster, traffic)


@usual
def test_nothing_was_lost_or_doubled(traffic: Traffic) -> None:
    traffic.end()
    traffic.assert_exactly_once()


def _assert_they_go_on(
    who: str, cut: tuple[str, ...], cluster: RunningCluster, traffic: Traffic
) -> None:
    traffic.wait_for_more()
    computing = cluster.computing()[0]

    cluster.cut(*(computing if each == WORKING else each for each in cut))
    seconds = traffic.wait_for_more()
    cluster.heal()

    _tell(who, back=seconds, healed=traffic.wait_for_more())


def _tell(who: str, **seconds: float) -> None:
    """For who measures (`pytest -s`)."""
    told = ", ".join(f"{name} after {each:.1f} s" for name, each in seconds.items())
    sys.stderr.write(f"{who}: {told}\n")
