"""Several brokers, of which some are killed: what is acknowledged is on two of three.

One away: writes go on. Two away: nothing is acknowledged, and who sends is told why. Back again:
all that was acknowledged is there, computed once.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from replicated_kafka import BROKERS, IN_STEP, ReplicatedKafka, as_settings
from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until
from steady_traffic import DEVICE, Traffic

from servioticy.domain.model import StreamRef
from servioticy.domain.topics import Topics
from servioticy.supervisor.process import Child

pytestmark = pytest.mark.timeout(1200)

DEVICES = 2
UPDATES = Topics("").updates


@pytest.fixture(scope="module")
def kafka(
    run_part: Callable[[str, Any], Child], tmp_path_factory: pytest.TempPathFactory
) -> ReplicatedKafka:
    return ReplicatedKafka(tmp_path_factory.mktemp("brokers"), run_part)


@pytest.fixture(scope="module")
def replicated(
    kafka: ReplicatedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningPlatform]:
    more = {**as_settings(kafka), "SERVIOTICY_ACCEPT_TIMEOUT_SECONDS": "3"}
    running = RunningPlatform(tmp_path_factory.mktemp("replicated") / "data", 1, more=more)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def traffic(replicated: RunningPlatform) -> Iterator[Traffic]:
    found = Traffic(replicated, DEVICES)
    yield found
    found.end()


def test_topics_are_on_all_brokers(kafka: ReplicatedKafka, replicated: RunningPlatform) -> None:
    until(lambda: set(kafka.in_step(UPDATES)) == {len(BROKERS)}, SECONDS_TO_RECOVER)


def test_writes_go_on_when_the_broker_that_leads_is_killed(
    kafka: ReplicatedKafka, traffic: Traffic
) -> None:
    traffic.wait_for_more()
    leader = kafka.leaders(UPDATES)[0]

    kafka.kill(leader)
    seconds = traffic.wait_for_more()

    assert kafka.leaders(UPDATES)[0] != leader
    assert kafka.in_step(UPDATES) == [IN_STEP]
    kafka.again(leader)
    until(lambda: kafka.in_step(UPDATES) == [len(BROKERS)], SECONDS_TO_RECOVER)
    _tell("the leader", back=seconds)


def test_with_one_broker_left_nothing_is_acknowledged_and_why_is_told(
    kafka: ReplicatedKafka, replicated: RunningPlatform, traffic: Traffic
) -> None:
    """Then all of them are back, and what was sent meanwhile is accepted as it is repeated."""
    device = replicated.create(DEVICE)
    path = f"/{device}/streams/data"
    traffic.wait_for_more()
    left, *killed = (kafka.leaders(UPDATES)[0], *BROKERS)
    killed.remove(left)
    for each in killed:
        kafka.kill(each)
    until(lambda: kafka.in_step(UPDATES) == [1], SECONDS_TO_RECOVER)

    began = time.monotonic()
    update = {"channels": {"v": {"current-value": 7}}, "lastUpdate": 7}
    status, _headers, body = replicated.request("PUT", path, update)

    assert status == 503
    assert "of partition 0 1 of 3 replicas are in step" in json.loads(body)["detail"]
    _tell("refused", after=time.monotonic() - began)
    for each in killed:
        kafka.again(each)
    _tell("all back", back=traffic.wait_for_more())
    replicated.put(StreamRef(device, "data"), 8, v=8)
    stored = [each["lastUpdate"] for each in replicated.updates(StreamRef(device, "data"))]
    # What was refused may be there or not, and nobody was promised it.
    assert stored in ([8], [7, 8])


def test_nothing_that_was_acknowledged_is_lost_or_doubled(traffic: Traffic) -> None:
    traffic.end()
    traffic.assert_exactly_once()


def _tell(what: str, **seconds: float) -> None:
    """For who measures (`pytest -s`)."""
    told = ", ".join(f"{name} {each:.1f} s" for name, each in seconds.items())
    sys.stderr.write(f"{what}: {told}\n")
