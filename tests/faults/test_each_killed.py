"""Two of each program and the pipeline, of which one at random is killed every few seconds.

Meanwhile devices send, with acknowledgements, by HTTP and by MQTT, each time to the next process;
what comes of it is read by all ways there are: stored, from durable subscriptions, by sockets.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator

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
UPDATES = 100_000
MANY = 5
"""Devices of each way that send so many in some minutes."""


class Device:
    """Sends 1, 2, 3 ... on a stream until it is ended, and has all that comes of it."""

    way = ""

    def __init__(self, two: Beside, pause_seconds: float) -> None:
        self._two = two
        self._pause_seconds = pause_seconds
        self._platform = two.platform
        self._requests = Requests(two.api_ports, two.platform.token)
        self._stop, self._closed = threading.Event(), threading.Event()
        self.id = two.platform.create(DEVICE)
        self.sent = 0
        self.seen: list[list[tuple[int, float]]] = []
        """What has come of its sum to a socket at each process."""
        for port in two.live_ports:
            self._watch(port)
        self._sending = threading.Thread(target=self._send_on, daemon=True)
        self._failure: BaseException | None = None

    def start(self) -> None:
        """Send from now on."""
        self._sending.start()

    def stop(self) -> None:
        """Send nothing more."""
        self._stop.set()

    def end(self) -> None:
        """Wait until all that was sent is acknowledged, and has come."""
        self._sending.join()
        assert self._failure is None
        until(lambda: self.sent in self.got, SECONDS)
        for each in self.seen:
            until(lambda each=each: self.sent in {n for n, _ in each}, SECONDS)

    def close(self) -> None:
        """Let its clients go."""
        self.stop()
        self._closed.set()

    @property
    def is_sending(self) -> bool:
        """Whether it goes on by itself."""
        return self._sending.is_alive()

    @property
    def got(self) -> list[int]:
        """What has come of its sum from its durable subscription."""
        raise NotImplementedError

    def stored(self, stream: str) -> list[tuple[int, float]]:
        """What there is of a stream of its own."""
        found = self._platform.updates(StreamRef(self.id, stream))
        return [(each["lastUpdate"], each["channels"]["v"]["current-value"]) for each in found]

    def _send(self, at: int) -> None:
        """Send an update until it is acknowledged, or it is ended."""
        raise NotImplementedError

    def _subscription(self, callback: str) -> str:
        path, document = f"/{self.id}/streams/sum/subscriptions", {"callback": callback}
        return str(self._requests.until_accepted("POST", path, document, 201)["id"])

    def _send_on(self) -> None:
        try:
            while not self._stop.wait(self._pause_seconds):
                self._send(self.sent + 1)
                self.sent += 1
        except BaseException as failure:
            self._failure = failure
            raise

    def _watch(self, port: int) -> None:
        seen: list[tuple[int, float]] = []
        self.seen.append(seen)
        stream = StreamRef(self.id, "sum")
        follower = Follower(f"ws://127.0.0.1:{port}", stream, self._platform.token, after=-1)

        def follow() -> None:
            for frame in follower.updates(self._closed):
                update = json.loads(frame)
                seen.append((update["lastUpdate"], update["channels"]["v"]["current-value"]))

        threading.Thread(target=follow, daemon=True).start()


class ByHttp(Device):
    """Puts, and comes for what it has subscribed to."""

    way = "pulled"

    def __init__(self, two: Beside, pause_seconds: float) -> None:
        super().__init__(two, pause_seconds)
        own = self._subscription("pull")
        self._puller = Puller(two.live_ports, two.platform.token, own)

    @property
    def got(self) -> list[int]:
        return self._puller.got

    def close(self) -> None:
        super().close()
        self._puller.close()

    def _send(self, at: int) -> None:
        path = f"/{self.id}/streams/data"
        self._requests.until_accepted("PUT", path, _update(at), 202)


class ByMqtt(Device):
    """Publishes, and another client is there for what it has subscribed to."""

    way = "by MQTT"

    def __init__(self, two: Beside, pause_seconds: float) -> None:
        super().__init__(two, pause_seconds)
        self._subscription("pubsub")
        token, ports = two.platform.token, two.mqtt_ports
        topic = f"{token}/{self.id}/streams/sum/updates"
        self.listener = MqttRoamer(ports, token, f"listener-{self.id}", topic)
        self._publisher = MqttRoamer(ports[::-1], token, f"publisher-{self.id}")

    @property
    def got(self) -> list[int]:
        return self.listener.got

    def close(self) -> None:
        super().close()
        self.listener.close()
        self._publisher.close()

    def _send(self, at: int) -> None:
        # One at a time: of several this client library may say the newest first when it comes
        # again, and of what is older than that nothing is computed.
        self._publisher.publish(f"updates/{self.id}/data", json.dumps(_update(at)).encode())
        until(lambda: self._publisher.acknowledged >= at, SECONDS)


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


@pytest.mark.timeout(900)
def test_each_is_killed_once_and_nothing_is_lost(two: Beside) -> None:
    chance = random.Random(11)
    devices: list[Device] = [ByHttp(two, PAUSE_SECONDS), ByMqtt(two, PAUSE_SECONDS)]

    deaths = _play(two, devices, chance.sample(EACH, len(EACH)), chance)

    _assert_nothing_is_lost(devices, deaths)


@by_hand("100,000 updates with a death every few seconds take some minutes, and both cores")
@pytest.mark.timeout(5_400)
def test_whoever_is_killed_and_whenever_nothing_is_lost(two: Beside) -> None:
    seed = random.randrange(2**32)
    sys.stderr.write(f"seed {seed}\n")
    chance = random.Random(seed)
    devices = [kind(two, 0.0) for kind in (ByHttp, ByMqtt) for _ in range(MANY)]

    def victims() -> Iterator[tuple[str, int]]:
        while sum(each.sent for each in devices) < UPDATES:
            assert all(each.is_sending for each in devices)
            yield chance.choice(EACH)

    began = time.monotonic()
    deaths = _play(two, devices, victims(), chance)

    sys.stderr.write(f"all had come after {time.monotonic() - began:.0f} s\n")
    _assert_nothing_is_lost(devices, deaths)


def _play(
    two: Beside,
    devices: list[Device],
    victims: Iterable[tuple[str, int]],
    chance: random.Random,
) -> int:
    """Kill these while the devices send, and wait until all has come; how many those were."""
    deaths = 0
    try:
        for each in devices:
            each.start()
        time.sleep(BETWEEN_SECONDS[1])
        for victim in victims:
            two.kill(*victim)
            deaths += 1
            time.sleep(chance.uniform(*BETWEEN_SECONDS))
        for each in devices:
            each.stop()
        for each in devices:
            each.end()
    finally:
        for each in devices:
            each.close()
    return deaths


def _assert_nothing_is_lost(devices: list[Device], deaths: int) -> None:
    for each in devices:
        numbers = range(1, each.sent + 1)
        sums = [(n, n * (n + 1)) for n in numbers]
        assert each.stored("data") == [(n, n) for n in numbers]
        assert each.stored("double") == [(n, 2 * n) for n in numbers]
        assert each.stored("sum") == sums
        for seen in each.seen:
            assert list(dict.fromkeys(seen)) == sums, "each, in order; some again, as they were"
        assert list(dict.fromkeys(each.got)) == [*numbers], each.way
        assert len(each.got) <= each.sent + AT_ONCE * (deaths + 1)
        assert max(Counter(each.got).values()) <= 1 + deaths
        if isinstance(each, ByMqtt):
            assert each.listener.connections > 1, "it was cut off, and went to the other one"
    sent = sum(each.sent for each in devices)
    again = sum(len(each.got) - each.sent for each in devices)
    most = max(len(each.got) - each.sent for each in devices)
    sys.stderr.write(
        f"{deaths} deaths, {sent} updates, {again} told twice by feeds, {most} at most by one\n"
    )
