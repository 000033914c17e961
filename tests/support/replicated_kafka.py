"""A Kafka of three brokers that hold everything each, and a controller that says who leads.

The controller is a node of its own, as it is where it matters: a majority of brokers may be gone,
and the one that is left still knows that it is alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.kafka import EmbeddedKafka, Member, new_identity
from servioticy.settings import changed, load
from servioticy.supervisor.process import Child

BROKERS = (1, 2, 3)
CONTROLLER = 100
IN_STEP = 2
HEAP = "192m"
SECONDS = 20


class _Controller(EmbeddedKafka):
    """It takes no requests of clients, so it is ready when it listens."""

    at = 0

    def is_ready(self) -> bool:
        return ports.answers(ports.LOOPBACK, self.at)


class ReplicatedKafka:
    """Its brokers can be killed and started again."""

    def __init__(self, folder: Path, run_part: Callable[[str, Any], Child]) -> None:
        self._run = run_part
        settings = changed(load(), broker_heap=HEAP)
        identity, at = new_identity(), ports.free()
        voters = f"{CONTROLLER}@{ports.LOOPBACK}:{at}"
        common = {
            "controller.quorum.voters": voters,
            "default.replication.factor": "3",
            # What a topic of ours is told itself is what is tried.
            "min.insync.replicas": "1",
            "offsets.topic.replication.factor": "3",
            # As soon as a broker does not follow it is out of step, and is waited for no longer.
            "replica.lag.time.max.ms": "2000",
        }
        listener = f"CONTROLLER://{ports.LOOPBACK}:{at}"
        own = {
            "process.roles": "controller",
            "node.id": str(CONTROLLER),
            "listeners": listener,
            "advertised.listeners": listener,
        }
        controller = _Controller(
            folder / "controller", settings, member=Member(identity, {**common, **own})
        )
        controller.at = at
        self._nodes: dict[int, EmbeddedKafka] = {CONTROLLER: controller}
        for number in BROKERS:
            place = f"PLAINTEXT://{ports.LOOPBACK}:{self._port(folder, number)}"
            own = {
                "process.roles": "broker",
                "node.id": str(number),
                "listeners": place,
                "advertised.listeners": place,
            }
            member = Member(identity, {**common, **own})
            self._nodes[number] = EmbeddedKafka(folder / str(number), settings, member=member)
        self._children = {each: self._start(each) for each in self._nodes}

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(self._nodes[each].bootstrap_servers for each in BROKERS)

    def kill(self, number: int) -> None:
        """As where its machine has lost its power, but for its disk."""
        self._children[number].kill_group()

    def again(self, number: int) -> None:
        """Start one that was killed."""
        self._children[number] = self._start(number)

    def leaders(self, topic: str) -> dict[int, int]:
        """By partition which broker leads it; below 0: nobody."""
        return {each.id: each.leader for each in self._partitions(topic)}

    def in_step(self, topic: str) -> list[int]:
        """Of each partition how many brokers have all of it."""
        return [len(each.isrs) for each in self._partitions(topic)]

    def _partitions(self, topic: str) -> Iterator[Any]:
        client = AdminClient({"bootstrap.servers": self.bootstrap_servers})
        yield from client.list_topics(topic, SECONDS).topics[topic].partitions.values()

    def _start(self, number: int) -> Child:
        return self._run(f"kafka-{number}", self._nodes[number])

    @staticmethod
    def _port(folder: Path, number: int) -> int:
        own = folder / str(number)
        own.mkdir(parents=True)
        return ports.kept(own / "port")


def as_settings(kafka: ReplicatedKafka) -> dict[str, str]:
    """Variables of a platform that stands on it."""
    return {
        "SERVIOTICY_BOOTSTRAP_SERVERS": kafka.bootstrap_servers,
        "SERVIOTICY_REPLICATION_FACTOR": json.dumps(len(BROKERS)),
        "SERVIOTICY_MIN_INSYNC_REPLICAS": json.dumps(IN_STEP),
    }
