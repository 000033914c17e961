"""Why the log takes nothing: a client that has waited in vain is told by its library only that."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import KafkaException

SECONDS = 0.5
"""For brokers to tell how they are; nobody waits for it who was acknowledged."""

AGAIN_SECONDS = 1.0
"""Many wait in vain at once, and the answer is the same for all of them."""


class ReplicasBehind:
    """Tells in which partitions of a topic brokers are missing. Safe to share between threads."""

    def __init__(self, topic: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._topic = topic
        self._clock = clock
        self._lock = threading.Lock()
        self._told = ""
        self._told_at = float("-inf")

    def why(self, client: Any) -> str:
        """Return in words which replicas are missing; empty where none is, or nobody tells.

        `client` is anything of librdkafka's that lists topics.
        """
        with self._lock:
            if self._clock() - self._told_at >= AGAIN_SECONDS:
                self._told = self._asked(client)
                self._told_at = self._clock()
            return self._told

    def _asked(self, client: Any) -> str:
        try:
            found = client.list_topics(self._topic, SECONDS)
        except KafkaException:
            return "no broker answers"
        known = found.topics.get(self._topic)
        return "; ".join(_missing(known.partitions.values() if known is not None else ()))


def _missing(partitions: Iterable[Any]) -> Iterable[str]:
    for each in partitions:
        if each.leader < 0:
            yield f"no broker leads partition {each.id}"
        elif len(each.isrs) < len(each.replicas):
            yield (
                f"of partition {each.id} {len(each.isrs)} of {len(each.replicas)} replicas are in "
                "step"
            )
