"""A cluster of several machines: what is sent through its balancer, while machines are cut off."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from running_cluster import RunningCluster
from steady_traffic import Traffic

from command.cluster import balancer, machines, network
from command.cluster.disks import CHECKOUT
from servioticy.errors import SetupError

pytestmark = pytest.mark.timeout(1200)

DEVICES = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    try:
        network.alone([])
        balancer.program()
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


def test_what_a_client_sends_comes_computed_to_a_socket(traffic: Traffic) -> None:
    """Through the balancer, two processes of the API, two workers and two of delivery."""
    traffic.wait_for_more()


def test_a_worker_has_neither_the_checkout_nor_others_files(cluster: RunningCluster) -> None:
    for each in machines.WORKERS:
        disk = Path(f"/proc/{cluster.pids()[each]}/root")
        for hidden in (CHECKOUT, cluster.data / "cluster"):
            assert not os.listdir(disk / hidden.relative_to("/"))
        assert [*map(str, (disk / "mnt").iterdir())] == [str(disk / "mnt" / each)]


def test_nothing_was_lost_or_doubled(traffic: Traffic) -> None:
    traffic.end()
    traffic.assert_exactly_once()
