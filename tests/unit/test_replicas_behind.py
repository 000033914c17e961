"""Who has waited in vain for the log is told which brokers are missing, and not where they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from servioticy import bootstrap
from servioticy.errors import SettingsError
from servioticy.messaging.replicas_behind import AGAIN_SECONDS, ReplicasBehind
from servioticy.settings import load


class Brokers:
    """What a client would tell of them, and how often it was asked."""

    def __init__(self, *partitions: tuple[int, int, int]) -> None:
        """Of each partition its leader, how many replicas it has, and how many are in step."""
        self.asked = 0
        self._partitions = {
            number: SimpleNamespace(
                id=number, leader=leader, replicas=range(replicas), isrs=range(in_step)
            )
            for number, (leader, replicas, in_step) in enumerate(partitions)
        }

    def list_topics(self, topic: str, _seconds: float) -> Any:
        self.asked += 1
        if not self._partitions:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=self._partitions)})


@pytest.mark.parametrize(
    ("brokers", "told"),
    [
        (Brokers((1, 3, 3)), ""),
        (Brokers((1, 3, 3), (2, 3, 1)), "of partition 1 1 of 3 replicas are in step"),
        (Brokers((-1, 3, 1)), "no broker leads partition 0"),
        (Brokers(), "no broker answers"),
    ],
)
def test_what_is_missing_is_told(brokers: Brokers, told: str) -> None:
    assert ReplicasBehind("updates").why(brokers) == told


def test_a_topic_that_nobody_knows_tells_nothing() -> None:
    class Empty:
        def list_topics(self, _topic: str, _seconds: float) -> Any:
            return SimpleNamespace(topics={})

    assert ReplicasBehind("updates").why(Empty()) == ""


def test_many_who_wait_in_vain_ask_once_a_second() -> None:
    now = [0.0]
    behind, brokers = ReplicasBehind("updates", lambda: now[0]), Brokers((1, 3, 1))

    for now[0] in (0.0, 0.1, AGAIN_SECONDS - 0.01):
        behind.why(brokers)
    assert brokers.asked == 1
    now[0] = AGAIN_SECONDS
    behind.why(brokers)
    assert brokers.asked == 2


def test_more_brokers_in_step_than_there_are_replicas_are_refused() -> None:
    own = {"bootstrap_servers": "127.0.0.1:1", "replication_factor": 2}

    with pytest.raises(SettingsError, match="min_insync_replicas = 3: expected at most"):
        bootstrap.make_topics(load({}, {**own, "min_insync_replicas": 3}))
