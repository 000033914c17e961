"""The salesman as a plain loop that consumes a topic of Kafka, which it fills by itself."""

from __future__ import annotations

import argparse
import json
import threading
import time

import salesman
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

LARGEST = 64 << 20


def produce(brokers: str, topic: str, runs: int, pause: float, size: tuple[int, int]) -> None:
    """Send so many inputs, with a break between two."""
    producer = Producer(
        {"bootstrap.servers": brokers, "message.max.bytes": LARGEST, "log_level": 2}
    )
    for number in range(runs):
        given = salesman.create(f"run-{number}", *size)
        producer.produce(topic, json.dumps(given))
        producer.flush()
        time.sleep(pause)


def main() -> None:
    """Take the inputs as they come, each through all steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--brokers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds")
    parser.add_argument("--vertices", type=int, default=8)
    parser.add_argument("--characters", type=int, default=900_000, help="a broker's bound")
    parser.add_argument("--parts", type=int, default=4)
    chosen = parser.parse_args()
    consumer = Consumer(
        {
            "bootstrap.servers": chosen.brokers,
            "group.id": "salesman",
            "auto.offset.reset": "earliest",
            "log_level": 2,
        }
    )
    admin = AdminClient({"bootstrap.servers": chosen.brokers, "log_level": 2})
    for made in admin.create_topics([NewTopic(chosen.topic, 1, 1)]).values():
        made.result(60)
    consumer.subscribe([chosen.topic])
    size = chosen.vertices, chosen.characters
    threading.Thread(
        target=produce,
        args=(chosen.brokers, chosen.topic, chosen.runs, chosen.pause, size),
        daemon=True,
    ).start()
    taken = 0
    while taken < chosen.runs:
        message = consumer.poll(1.0)
        if message is None or message.error():
            continue
        parts = salesman.paths(salesman.extract(json.loads(message.value())), chosen.parts)
        told = salesman.summarize([salesman.distance(each) for each in parts])
        print(told["id"], round(told["least"], 3), flush=True)
        taken += 1
    consumer.close()


if __name__ == "__main__":
    main()
