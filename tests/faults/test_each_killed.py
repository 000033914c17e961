"""Two of each program and the pipeline, of which one at random is killed every few seconds.

Meanwhile updates are sent with acknowledgements, by HTTP and MQTT, each time to the next process;
and read by all ways there are: stored, from durable subscriptions, by sockets.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from beside_programs import SEVERAL, Beside, beside
from examples import by_hand
from roaming_clients import MqttRoamer, Puller, Requests
from running_platform import RunningPlatform, until
from steady_traffic import DEVICE

from servioticy.client.follower import Follower
from servioticy.domain.model import StreamRef

SECONDS = 300.0
PAUSE_SECONDS = 0.03
BETWEEN_SECONDS = (1.5, 4.0)
"""Two deaths; so a process that comes again may be killed before it is there."""
AT_ONCE = 64
"""What a durable subscription may tell twice for each time that its place changes hands."""
EACH = [*itertools.product(SEVERAL, (0, 1)), ("pipeline", 0)]


class Load:
    """Sends 1, 2, 3 ... on a stream of two devices, and reads what comes of it."""

    def __init__(self, two: Beside) -> None:
        platform = two.platform
        self._platform = platform
        self.by_http, self.by_mqtt = platform.create(DEVICE), platform.create(DEVICE)
        self.sent = {self.by_http: 0, self.by_mqtt: 0}
        self._requests = Requests(two.api_ports, platform.token)
        pulled = self._subscription(self.by_http, "pull")
        self._subscription(self.by_mqtt, "pubsub")
        topic = f"{platform.token}/{self.by_mqtt}/streams/sum/updates"
        self.puller = Puller(two.live_ports, platform.token, pulled)
        self.listener = MqttRoamer(two.mqtt_ports, platform.token, "listener", topic)
        self.publisher = MqttRoamer(two.mqtt_ports[::-1], platform.token, "publisher")
        self._stop, self._closed = threading.Event(), threading.Event()
        self.watched: list[tuple[str, list[tuple[int, float]]]] = []
        self._threads = [threading.Thread(target=each) for each in (self._put, self._publish)]
        for so, port in itertools.product(self.sent, two.live_ports):
            seen: list[tuple[int, float]] = []
            self.watched.append((so, seen))
            follower = Follower(
                f"ws://127.0.0.1:{port}", StreamRef(so, "sum"), platform.token, after=-1
            )
            threading.Thread(target=self._watch, args=(follower, seen), daemon=True).start()
        for thread in self._threads:
            thread.start()

    def _subscription(self, so: str, callback: str) -> str:
        path, document = f"/{so}/streams/sum/subscriptions", {"callback": callback}
        return str(self._requests.until_accepted("POST", path, document, 201)["id"])

    def _put(self) -> None:
        path = f"/{self.by_http}/streams/data"
        while not self._stop.wait(PAUSE_SECONDS):
            at = self.sent[self.by_http] + 1
            self._requests.until_accepted("PUT", path, _update(at), 202)
            self.sent[self.by_http] = at

    def _publish(self) -> None:
        topic = f"updates/{self.by_mqtt}/data"
        while not self._stop.wait(PAUSE_SECONDS):
            # Of several this client library may say the newest first when it comes again, and of
            # what is older than that nothing is computed.
            if self.sent[self.by_mqtt] == self.publisher.acknowledged:
                self.sent[self.by_mqtt] += 1
                said = json.dumps(_update(self.sent[self.by_mqtt])).encode()
                self.publisher.publish(topic, said)

    def _watch(self, follower: Follower, seen: list[tuple[int, float]]) -> None:
        for frame in follower.updates(self._closed):
            update = json.loads(frame)
            seen.append((update["lastUpdate"], update["channels"]["v"]["current-value"]))

    def end(self) -> None:
        """Send nothing more; wait until all of it is acknowledged, and has come."""
        self._stop.set()
        for each in self._threads:
            each.join()
        until(lambda: self.publisher.acknowledged >= self.sent[self.by_mqtt], SECONDS)
        until(lambda: self.sent[self.by_http] in self.puller.got, SECONDS)
        until(lambda: self.sent[self.by_mqtt] in self.listener.got, SECONDS)
        for so, seen in self.watched:
            until(lambda so=so, seen=seen: self.sent[so] in {n for n, _ in seen}, SECONDS)

    def close(self) -> None:
        """Let all clients go."""
        self._stop.set()
        self._closed.set()
        for each in (self.puller, self.listener, self.publisher):
            each.close()

    def stored(self, so: str, stream: str) -> list[tuple[int, float]]:
        found = self._platform.updates(StreamRef(so, stream))
        return [(each["lastUpdate"], each["channels"]["v"]["current-value"]) for each in found]


def _update(at: int) -> dict[str, object]:
    return {"channels": {"v": {"current-value": at}}, "lastUpdate": at}


@pytest.fixture
def two(platform: RunningPlatform) -> Iterator[Beside]:
    with beside(platform) as found:
        api = Requests((found.api_port,), platform.token)
        live = Requests((found.live_port,), platform.token)
        until(lambda: api.ask("GET", "/private/health")[0] == 200, SECONDS)
        until(lambda: live.ask("GET", "/health")[0] == 200, SECONDS)
        yield found


@by_hand("seven deaths take two minutes, and most of two cores")
@pytest.mark.timeout(900)
def test_each_is_killed_once_and_nothing_is_lost(two: Beside) -> None:
    chance = random.Random(11)
    victims = chance.sample(EACH, len(EACH))

    _assert_nothing_is_lost(two, victims, chance)


@by_hand("a hundred deaths take half an hour")
@pytest.mark.timeout(5_400)
def test_whoever_is_killed_and_whenever_nothing_is_lost(two: Beside) -> None:
    seed = random.randrange(2**32)
    sys.stderr.write(f"seed {seed}\n")
    chance = random.Random(seed)

    _assert_nothing_is_lost(two, chance.choices(EACH, k=100), chance)


def _assert_nothing_is_lost(
    two: Beside, victims: Sequence[tuple[str, int]], chance: random.Random
) -> None:
    load = Load(two)
    try:
        time.sleep(BETWEEN_SECONDS[1])
        for each in victims:
            two.kill(*each)
            time.sleep(chance.uniform(*BETWEEN_SECONDS))
        load.end()
    finally:
        load.close()

    for so, count in load.sent.items():
        numbers = range(1, count + 1)
        assert load.stored(so, "data") == [(n, n) for n in numbers]
        assert load.stored(so, "double") == [(n, 2 * n) for n in numbers]
        assert load.stored(so, "sum") == [(n, n * (n + 1)) for n in numbers]
    for so, seen in load.watched:
        told = [(n, n * (n + 1)) for n in range(1, load.sent[so] + 1)]
        assert list(dict.fromkeys(seen)) == told, "each, in order; some again, as they were"
    for so, got in ((load.by_http, load.puller.got), (load.by_mqtt, load.listener.got)):
        name = "pulled" if so == load.by_http else "by MQTT"
        assert list(dict.fromkeys(got)) == [*range(1, load.sent[so] + 1)], name
        assert len(got) <= load.sent[so] + AT_ONCE * (len(victims) + 1)
        assert max(Counter(got).values()) <= 1 + len(victims)
    assert load.listener.connections > 1, "it was cut off, and went to the other one"
    sent = sum(load.sent.values())
    again = len(load.puller.got) + len(load.listener.got) - sent
    sys.stderr.write(f"{len(victims)} deaths, {sent} updates, {again} told twice by feeds\n")
