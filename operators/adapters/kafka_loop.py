"""An operator under another engine: a plain loop over Kafka, and nothing of the platform's.

A message of the first topic is an event as JSON, `{"stream", "timestamp", "channels"}`; its key
says of which composite. What the program makes of it goes to the second one, under the same key,
what it keeps for a key to TO-state, what is wrong to TO-errors: together with how far was read. So
each is there once, and a loop that was killed goes on where its last transaction ended. Loops of
one `--group` share the partitions, each with an `--id` that it keeps. A program that ends, or is
silent for too long, ends the loop. It has no walls: it is for one's own.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import struct
import subprocess
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

WAIT_SECONDS, POLL_SECONDS, MOST_MESSAGES = 60.0, 0.5, 1000


class Program:
    """A program that was begun from its folder, and speaks frames over a socket."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        """Raises SystemExit where it does not begin."""
        ours, theirs = socket.socketpair()
        own = os.environ | {"SERVIOTICY_OPERATOR": str(theirs.fileno())}
        subprocess.Popen(command, cwd=folder, env=own, pass_fds=[theirs.fileno()])
        theirs.close()
        ours.settimeout(WAIT_SECONDS)
        self._socket, self._stream = ours, ours.makefile("rb")
        if self._said() != {"ready": True}:
            raise SystemExit("the program does not say that it is ready")

    def ask(self, questions: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the replies by the ids of their questions. Raises SystemExit."""
        body = json.dumps({"questions": questions}).encode()
        self._socket.sendall(struct.pack(">I", len(body)) + body)
        replies: dict[str, Any] = {}
        while len(replies) < len(questions):
            replies |= {each["id"]: each for each in self._said()["replies"]}
        return replies

    def _said(self) -> Any:
        if len(head := self._stream.read(4)) < 4:
            raise SystemExit("the program has ended")
        return json.loads(self._stream.read(struct.unpack(">I", head)[0]))


class Loop:
    """Reads, asks, writes."""

    def __init__(self, given: argparse.Namespace) -> None:
        said = json.loads((given.folder / "operator.json").read_text())
        self._most = min(said.get("batch", {}).get("max", MOST_MESSAGES), MOST_MESSAGES)
        self._program, self._to = Program(given.folder, said["command"]), given.to
        self._kept: dict[tuple[int, bytes], Any] = {}
        self._common = {"bootstrap.servers": given.brokers, "isolation.level": "read_committed"}
        self._writer = Producer({"bootstrap.servers": given.brokers, "transactional.id": given.id})
        self._writer.init_transactions(WAIT_SECONDS)  # what one before has left open ends here
        group = {"group.id": given.group, "group.instance.id": given.id}
        begin = {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        self._consumer = Consumer({**self._common, **group, **begin})
        self._consumer.subscribe([given.source], on_assign=self._load)

    def turn(self) -> None:
        """Take what has come, and store what comes of it, at once. Raises KafkaException."""
        come = self._consumer.consume(self._most, POLL_SECONDS)
        if not come:
            return
        self._writer.begin_transaction()
        asked: dict[tuple[Any, bytes], list[dict[str, Any]]] = {}
        for each in come:
            if each.error():
                raise KafkaException(each.error())
            key = each.key() or b""
            try:
                event = {"version": 0, "correlation": None, **json.loads(each.value() or b"")}
                asked.setdefault((each.partition(), key), []).append(event)
            except (ValueError, TypeError) as error:
                self._write(f"{self._to}-errors", key, {"error": f"no event: {error}"})
        self._ask(asked)
        places = self._consumer.position(self._consumer.assignment())
        group = self._consumer.consumer_group_metadata()
        self._writer.send_offsets_to_transaction([p for p in places if p.offset >= 0], group)
        self._writer.commit_transaction(WAIT_SECONDS)

    def _ask(self, asked: dict[tuple[int, bytes], list[dict[str, Any]]]) -> None:
        questions = []
        for number, (place, events) in enumerate(asked.items()):
            named = {"id": str(number), "composite": place[1].decode(errors="replace")}
            questions.append({**named, "state": self._kept.get(place), "events": events})
        replies = self._program.ask(questions) if questions else {}
        for number, (place, events) in enumerate(asked.items()):
            reply = replies[str(number)]
            if reply.get("error"):
                self._write(f"{self._to}-errors", place[1], {"error": reply["error"]})
            for made in reply.get("outputs", ()):
                at = events[made.pop("event")].get("timestamp")
                self._write(self._to, place[1], {"timestamp": at, **made})
            if "state" in reply:
                self._kept[place] = reply["state"]
                self._write(f"{self._to}-state", place[1], reply["state"], partition=place[0])

    def _write(self, topic: str, key: bytes, value: Any, **where: Any) -> None:
        self._writer.produce(topic, json.dumps(value), key, **where)
        self._writer.poll(0)

    def _load(self, _consumer: Consumer, given: list[Any]) -> None:
        """Read what was kept for the keys of these partitions: all that this loop has now."""
        self._kept.clear()
        reader: Any = Consumer({**self._common, "group.id": "none", "enable.partition.eof": True})
        for each in given:
            reader.assign([type(each)(f"{self._to}-state", each.partition, 0)])
            while not (error := (message := reader.consume(1, WAIT_SECONDS)[0]).error()):
                self._kept[each.partition, message.key()] = json.loads(message.value())
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
        reader.close()


def main() -> None:
    """Loop for ever; topics that are not there are made, with the partitions of what is read."""
    parser = argparse.ArgumentParser("kafka_loop")
    parser.add_argument("folder", type=Path)
    for name in ("brokers", "source", "to", "group", "id"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    admin = AdminClient({"bootstrap.servers": given.brokers})
    count = len(admin.list_topics(given.source, WAIT_SECONDS).topics[given.source].partitions)
    new = [NewTopic(each, count, 1) for each in (given.to, f"{given.to}-errors")]
    new += [NewTopic(f"{given.to}-state", count, 1, config={"cleanup.policy": "compact"})]
    for made in admin.create_topics(new).values():
        made.exception(WAIT_SECONDS)  # mostly: it is there already
    loop = Loop(given)
    while True:
        loop.turn()


if __name__ == "__main__":
    main()
