"""A rolling upgrade while devices send: two releases beside each other, one store, one log.

First the schema, then a process of the API, one of delivery, the pipeline, and what is left.
Devices repeat what nobody answered, as a balancer does for them; nothing else may fail.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import next_release
import pytest
from running_platform import SECONDS_TO_RECOVER, until
from steady_traffic import DEVICE, Device

from servioticy import bootstrap
from servioticy.client.follower import Follower
from servioticy.client.rest import Rest
from servioticy.domain.model import StreamRef
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.kafka import EmbeddedKafka
from servioticy.errors import Unavailable
from servioticy.settings import Settings, changed, load, to_environment
from servioticy.storage import migrations
from servioticy.storage.database import Database
from servioticy.storage.tenants import PostgresTenants

pytestmark = pytest.mark.timeout(1200)

DEVICES = 2
PAUSE_SECONDS = 0.05
STEADY_SECONDS = 3.0
HEALTH = {"api": "/private/health", "delivery": "/health"}


class Running:
    """A program of one of the two releases."""

    def __init__(
        self, module: str, settings: Settings, folder: Path, release: Path | None = None
    ) -> None:
        self._module, self._settings, self._folder = module, settings, folder
        self.port = settings.api.port if module == "api" else settings.delivery.port
        self.log = folder / f"{module}-{'next' if release else 'present'}-{self.port}.log"
        self.begin(release)

    def begin(self, release: Path | None) -> None:
        """Start it; as soon as it can."""
        self._ready = self._folder / f"{self._module}-{self.port}.ready"
        self._ready.unlink(missing_ok=True)
        own = {"SERVIOTICY_READY_FILE": str(self._ready), "TMPDIR": str(self._folder)}
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", self._module],
                env={**next_release.environment(release), **to_environment(self._settings), **own},
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def wait(self) -> None:
        """Until it serves; a pipeline until it is there, be it as a standby."""
        if self._module in HEALTH:
            until(self.is_well, SECONDS_TO_RECOVER)

    def is_well(self) -> bool:
        """Whether a balancer would send requests here."""
        with Rest(f"http://127.0.0.1:{self.port}", "", 2.0) as client:
            return client.request("GET", HEALTH[self._module]).status == 200

    def replace(self, release: Path) -> None:
        """End it as one ends programs, and start one of that release in its place."""
        self.end()
        self.begin(release)
        self.wait()

    def end(self) -> None:
        """SIGTERM."""
        self.process.terminate()
        self.process.wait(SECONDS_TO_RECOVER)

    def said(self) -> str:
        """Its log."""
        return self.log.read_text("utf-8", "replace")


@dataclass
class Clients:
    """Devices that send in turn, each to the next process of the API, and who watches them."""

    apis: list[int]
    lives: list[int]
    token: str
    devices: list[Device] = field(default_factory=list)
    failures: list[tuple[int, bytes]] = field(default_factory=list)
    """Answers that no device should get."""
    refused: int = 0
    """Connections: a balancer that looks at health makes none of them."""

    def begin(self) -> None:
        """Make the devices, and begin."""
        for _ in range(DEVICES):
            status, body = self.request("POST", "/", DEVICE)
            assert status == 201, body
            self.devices.append(Device(json.loads(body)["id"]))
        self._stop = threading.Event()
        self._sending = threading.Thread(target=self._send, daemon=True)
        self._sending.start()
        for number, each in enumerate(self.devices):
            port = self.lives[number % len(self.lives)]
            threading.Thread(target=self._watch, args=(each, port), daemon=True).start()

    def request(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        """Ask the next of the processes that answers."""
        while True:
            self.apis.append(self.apis.pop(0))
            try:
                with Rest(f"http://127.0.0.1:{self.apis[-1]}", self.token, 60.0) as api:
                    answer = api.request(method, path, body)
            except (OSError, Unavailable):
                self.refused += 1
                time.sleep(PAUSE_SECONDS)
                continue
            if answer.status >= 500:
                self.failures.append((answer.status, answer.body))
            return answer.status, answer.body

    def flows(self) -> float:
        """Wait until what is sent comes to every socket for some seconds; return since when."""
        began = time.monotonic()
        marks = [each.sent + 2 for each in self.devices]
        since = [0.0]

        def steady() -> bool:
            now = time.monotonic()
            if not all(map(Device.follows, self.devices, marks)):
                since[0] = 0.0
                return False
            since[0] = since[0] or now
            return now - since[0] >= STEADY_SECONDS

        until(steady, SECONDS_TO_RECOVER)
        return since[0] - began

    def end(self) -> None:
        """Send nothing more."""
        self._stop.set()
        self._sending.join()

    def _send(self) -> None:
        while not self._stop.is_set():
            for each in self.devices:
                at = each.sent + 1
                update = {"channels": {"v": {"current-value": at}}, "lastUpdate": at}
                while self.request("PUT", f"/{each.id}/streams/data", update)[0] != 202:
                    time.sleep(PAUSE_SECONDS)
                each.sent = at
            self._stop.wait(PAUSE_SECONDS)

    def _watch(self, device: Device, port: int) -> None:
        follower = Follower(
            f"ws://127.0.0.1:{port}", StreamRef(device.id, "sum"), self.token, after=-1
        )
        for frame in follower.updates(threading.Event()):
            found = json.loads(frame)
            device.seen.append((found["lastUpdate"], found["channels"]["v"]["current-value"]))

    def stored(self, stream: StreamRef) -> list[tuple[int, float]]:
        """All of it."""
        _status, body = self.request("GET", f"/{stream.service_object}/streams/{stream.stream}")
        found = json.loads(body)["data"] if body else []
        return [(each["lastUpdate"], each["channels"]["v"]["current-value"]) for each in found]


@dataclass
class Upgrade:
    """Both releases, the store, and who uses them."""

    settings: Settings
    release: Path
    folder: Path
    running: dict[str, Running]
    clients: Clients
    database: Database

    def tell(self, what: str, seconds: float) -> None:
        """For who measures (`pytest -s`)."""
        refused, self.clients.refused = self.clients.refused, 0
        sys.stderr.write(f"{what}: flows after {seconds:.1f} s, {refused} connections refused\n")


@pytest.fixture(scope="module")
def upgrade(
    module_dsn: str, real_kafka: EmbeddedKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Upgrade]:
    folder = tmp_path_factory.mktemp("upgrade")
    settings = load(
        overrides={
            "dsn": module_dsn,
            "bootstrap_servers": real_kafka.bootstrap_servers,
            "topic_prefix": "rolling-",
            "pipeline_metrics_port": 0,
            "api_metrics_port": 0,
            "live_metrics_port": 0,
        }
    )
    bootstrap.make_topics(settings)
    database = Database(settings.store.dsn)
    migrations.migrate(database)
    token = PostgresTenants(database).create_tenant("rolling")
    running = {"pipeline": Running("pipeline", settings, folder)}
    for number in (1, 2):
        own = changed(settings, api_port=ports.free(), live_port=ports.free())
        running[f"api-{number}"] = Running("api", own, folder)
        running[f"delivery-{number}"] = Running("delivery", own, folder)
    clients = Clients(
        [each.port for name, each in running.items() if name.startswith("api")],
        [each.port for name, each in running.items() if name.startswith("delivery")],
        token,
    )
    release = next_release.make(folder / "next")
    found = Upgrade(settings, release, folder, running, clients, database)
    try:
        for each in running.values():
            each.wait()
        clients.begin()
        yield found
    finally:
        for each in found.running.values():
            each.process.terminate()
        for each in found.running.values():
            each.process.wait(SECONDS_TO_RECOVER)
        database.close()


def test_the_present_release_goes_on_with_the_schema_of_the_next(upgrade: Upgrade) -> None:
    """Migrated while everybody reads and writes."""
    upgrade.clients.flows()
    words = [sys.executable, "-P", "-m", "command.cli", "migrate"]
    environment = {
        **next_release.environment(upgrade.release),
        **to_environment(upgrade.settings),
    }
    done = subprocess.run(
        words, env=environment, cwd=upgrade.folder, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert next_release.MIGRATION in migrations.applied(upgrade.database)
    upgrade.tell("the schema", upgrade.clients.flows())


@pytest.mark.parametrize("which", ["api-1", "delivery-1"])
def test_a_process_of_the_next_release_works_beside_the_present_ones(
    which: str, upgrade: Upgrade
) -> None:
    upgrade.clients.flows()
    upgrade.running[which].replace(upgrade.release)

    upgrade.tell(which, upgrade.clients.flows())


def test_the_pipeline_of_the_next_release_takes_over_from_the_present_one(
    upgrade: Upgrade,
) -> None:
    """It is there as a standby before, so nobody waits for its start."""
    present = upgrade.running["pipeline"]
    standby = Running("pipeline", upgrade.settings, upgrade.folder, upgrade.release)
    upgrade.running["standby"] = standby
    until(lambda: "pipeline_ready" in standby.said(), SECONDS_TO_RECOVER)
    upgrade.clients.flows()
    assert _moved_by(upgrade) is None

    present.end()

    upgrade.tell("the pipeline", upgrade.clients.flows())
    assert _moved_by(upgrade) == next_release.NAME


@pytest.mark.parametrize("which", ["api-2", "delivery-2"])
def test_what_is_left_is_replaced(which: str, upgrade: Upgrade) -> None:
    """Until then the present release reads what the next one has written and emitted."""
    upgrade.clients.flows()
    upgrade.running[which].replace(upgrade.release)

    upgrade.tell(which, upgrade.clients.flows())


def test_nothing_was_lost_doubled_or_refused(upgrade: Upgrade) -> None:
    clients = upgrade.clients
    clients.end()
    for each in clients.devices:
        until(lambda each=each: each.seen[-1][0] == each.sent, SECONDS_TO_RECOVER)
        sent = [(n, n) for n, _ in each.sums]
        assert clients.stored(StreamRef(each.id, "data")) == sent
        assert clients.stored(StreamRef(each.id, "sum")) == each.sums
        assert list(dict.fromkeys(each.seen)) == each.sums
    assert clients.failures == []
    assert not _letters(upgrade)


def _moved_by(upgrade: Upgrade) -> object:
    return upgrade.database.rows("SELECT moved_by FROM progress")[0][0]


def _letters(upgrade: Upgrade) -> list[str]:
    """What a program could not read, it says."""
    return [
        f"{each.log.name}: {line}"
        for each in upgrade.running.values()
        for line in each.said().splitlines()
        if "dead_letter" in line or "unreadable" in line
    ]
