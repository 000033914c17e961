"""The same operator's folder in a plain loop over Kafka: another engine, the same answers."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from operator_folders import PROGRAM, SECONDS, answers, node_of, question, write

from operators.adapters import kafka_loop
from servioticy.embedded.kafka import EmbeddedKafka

COUNT = """
from servioticy_operator import serve
def count(event, state):
    if event.value("value") < 0:
        raise ValueError("below zero")
    state.put("count", state.get("count", 0) + 1)
    return {"count": state.get("count"), "value": event.value("value")}
serve(count)
"""


PAGE = (Path(__file__).parents[2] / "docs/operators.md").read_text()
COMMAND = next(each for each in PAGE.splitlines() if each.startswith("python3 -m operators.ad"))


class Broker:
    """Topics of a test on the real broker."""

    def __init__(self, kafka: EmbeddedKafka, prefix: str) -> None:
        self.brokers = kafka.bootstrap_servers
        self.given, self.made = f"{prefix}given", f"{prefix}made"
        self.group = f"{prefix}group"
        admin = AdminClient({"bootstrap.servers": self.brokers})
        for each in admin.create_topics([NewTopic(self.given, 2, 1)]).values():
            each.result(SECONDS)

    def send(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Append these to what is read, each with its key."""
        producer = Producer({"bootstrap.servers": self.brokers})
        for key, value in messages:
            producer.produce(self.given, value, key)
        assert producer.flush(SECONDS) == 0

    def read(self, topic: str, count: int) -> list[tuple[str, Any]]:
        """Wait for so many committed messages, and return all that are there by then."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": f"{topic}-reader",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "topic.metadata.refresh.interval.ms": 200,
            }
        )
        consumer.subscribe([topic])
        found: list[tuple[str, Any]] = []
        end = time.monotonic() + SECONDS
        while len(found) < count and time.monotonic() < end:
            for each in consumer.consume(100, 0.2):
                if each.error() is None:
                    found.append((each.key().decode(), json.loads(each.value())))
        consumer.close()
        assert len(found) >= count, found
        return found

    def loop(self, folder: Path) -> subprocess.Popen[bytes]:
        """Begin a loop by the command that the page prints."""
        _, *words = shlex.split(COMMAND)
        here = {
            "fraud-filter": str(folder),
            "kafka.example.org:9092": self.brokers,
            "payments": self.given,
            "suspicious": self.made,
            "watchers": self.group,
            "watcher-1": f"{self.group}-1",
        }
        return subprocess.Popen([sys.executable, *(here.get(each, each) for each in words)])


def event(number: int) -> bytes:
    """Return an event as the platform has it."""
    channels = {"value": number}
    return json.dumps({"stream": "a", "timestamp": 1000 + number, "channels": channels}).encode()


def test_what_it_makes_is_what_the_platform_makes_of_it(
    real_kafka: EmbeddedKafka, topic_prefix: str, tmp_path: Path
) -> None:
    """Killed and begun again: each once and in order, from the state of the last commit."""
    broker = Broker(real_kafka, topic_prefix)
    folder = write(tmp_path / "a", COUNT, batch={"max": 7})
    keys = ("air", "water", "earth")
    sent = [(key, event(number)) for number in range(20) for key in keys]
    broker.send([*sent[:30], ("air", b"no JSON"), ("fire", event(-1))])
    loop = broker.loop(folder)
    try:
        broker.read(broker.made, 10)
        loop.kill()
        loop.wait()
        broker.send(sent[30:])
        loop = broker.loop(folder)
        made = broker.read(broker.made, 60)
        wrong = broker.read(f"{broker.made}-errors", 2)
    finally:
        loop.kill()
        loop.wait()
    with node_of({PROGRAM: folder}, tmp_path) as node:
        reply = answers(node, [question(1, values=range(20))])[b"q1"]
    expected = [
        {"timestamp": 1000 + number, "channels": json.loads(each.channels)}
        for number, each in enumerate(reply.outputs)
    ]

    assert [value for key, value in made if key == "air"] == expected
    for key in keys:
        assert [value for of, value in made if of == key] == expected
    assert sorted(key for key, _ in wrong) == ["air", "fire"]
    assert any("below zero" in told["error"] for _, told in wrong)


def test_the_adapter_is_short() -> None:
    """What makes an operator run elsewhere is to be read in one go."""
    assert len(Path(kafka_loop.__file__).read_text().splitlines()) < 150
