"""A whole platform as a user runs it: `servioticy up`, its REST API and its sockets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import pytest
import waiting

from servioticy.client.follower import Follower
from servioticy.client.rest import Rest
from servioticy.domain.model import StreamRef
from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.folder import read_run
from servioticy.errors import Unavailable

SECONDS_TO_START = 300.0
SECONDS_TO_RECOVER = 300.0
SECONDS_FOR_AN_ANSWER = 60.0


class CommandFailedError(AssertionError):
    """A command that ended with something else than 0, with what it said."""


class RunningPlatform:
    """`servioticy up` on a folder of its own, and one tenant."""

    rests = False
    starts = "up"
    """its command"""
    ready = "servioticy ready"
    """how the line begins that says so"""

    def __init__(
        self,
        data: Path,
        partitions: int = 2,
        back_up: Path | None = None,
        more: Mapping[str, str] = {},
    ) -> None:
        """`back_up` is restored before it is started; `more` are further variables."""
        self.data = data
        if back_up is not None:  # before ports are chosen: it takes a while
            self._environment = {**os.environ, "SERVIOTICY_DATA": str(data)}
            self.restored = self.command("restore", str(back_up)).stdout
        self.api_port, self.live_port, self.mqtt_port = (ports.free() for _ in range(3))
        programs = ("up", "api", "live", "mqtt", "pipeline", "functions")
        self.metrics_ports = {name: ports.free() for name in programs}
        self._environment = {
            **os.environ,
            "SERVIOTICY_DATA": str(data),
            "SERVIOTICY_API_PORT": str(self.api_port),
            "SERVIOTICY_LIVE_PORT": str(self.live_port),
            "SERVIOTICY_MQTT_PORT": str(self.mqtt_port),
            "SERVIOTICY_PARTITIONS": str(partitions),
            "SERVIOTICY_LIVE_CALLBACK_NETWORKS": "127.0.0.0/8",
            "SERVIOTICY_OPERATOR_TENANT": "tests",
            "SERVIOTICY_FUNCTIONS_STORES": json.dumps(
                {"incoming": f"file://{quote(str(data))}/incoming/{{tenant}}"}
            ),
            # Not every machine of tests can enclose programs; tests/integration tries the walls.
            "SERVIOTICY_OPERATORS_PROTECTION": "any",
            **more,
            **{
                f"SERVIOTICY_{name.upper()}_METRICS_PORT": str(port)
                for name, port in self.metrics_ports.items()
            },
        }
        self.start()
        self.token = self.command("tenant", "create", "tests").stdout.strip()

    def start(self) -> None:
        """Start it and wait for its line that it is ready."""
        self._output = (self.data.parent / "up.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "command.cli", self.starts],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=self._output,
        )
        assert self.process.stdout is not None
        watchdog = threading.Timer(SECONDS_TO_START, self.process.kill)
        watchdog.start()
        line = self.process.stdout.readline().decode()
        watchdog.cancel()
        assert line.startswith(self.ready), line + self.log()

    @property
    def environment(self) -> dict[str, str]:
        """The variables that its commands run with."""
        return dict(self._environment)

    @property
    def output(self) -> BinaryIO:
        """Where it writes its events to."""
        return self._output

    def log(self) -> str:
        """The end of what it has said on standard error."""
        return (self.data.parent / "up.log").read_text("utf-8", "replace")[-3000:]

    def stop(self) -> int:
        """Ctrl-C, and its exit code."""
        self.process.send_signal(2)
        code = self.process.wait(60)
        self._output.close()
        return code

    def command(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a `servioticy` command beside it, with `more` variables of its own.

        Raises CommandFailedError."""
        done = subprocess.run(
            [sys.executable, "-m", "command.cli", *arguments],
            env={**self._environment, **more},
            capture_output=True,
            text=True,
            timeout=SECONDS_TO_START,  # some start servers
            check=False,
        )
        if done.returncode != 0:
            raise CommandFailedError(done.stderr)
        return done

    def pids(self) -> dict[str, int]:
        """The programs' processes, as the supervisor notes them."""
        facts = read_run(self.data) or {}
        return dict(facts.get("pids", {}))

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own: status, headers (lower case), body.

        Raises Unavailable where no answer comes.
        """
        url = f"http://127.0.0.1:{self.api_port}"
        with Rest(url, self.token if token is None else token, SECONDS_FOR_AN_ANSWER) as api:
            answer = api.request(method, path, body, headers)
        return answer.status, dict(answer.headers), answer.body

    def create(self, document: dict[str, Any]) -> str:
        """Create a Service Object, as often as its code has to wait to be looked at.

        All tests are one tenant, which uses up what it may take at once.
        """
        answer = b""

        def created() -> bool:
            nonlocal answer
            status, _headers, answer = self.request("POST", "/", document)
            assert status in (201, 503), answer
            return status == 201

        until(created, SECONDS_TO_RECOVER)
        return str(json.loads(answer)["id"])

    def put(self, stream: StreamRef, timestamp: int, **values: Any) -> None:
        """Send an update until it is accepted, as a device does."""
        channels = {name: {"current-value": value} for name, value in values.items()}
        update = {"channels": channels, "lastUpdate": timestamp}
        path = f"/{stream.service_object}/streams/{stream.stream}"

        def accepted() -> bool:
            status, _headers, body = self.request("PUT", path, update)
            assert status in (202, 500, 502, 503, 504), (status, body)
            return status == 202

        until(accepted, SECONDS_TO_RECOVER)

    def updates(self, stream: StreamRef) -> list[dict[str, Any]]:
        """Everything stored, read when the pipeline has stored all that was accepted."""
        path = f"/{stream.service_object}/streams/{stream.stream}"
        found: list[dict[str, Any]] = []

        def complete() -> bool:
            status, headers, body = self.request("GET", path)
            if status not in (200, 204) or "x-servioticy-behind" in headers:
                return False
            found[:] = json.loads(body)["data"] if body else []
            return True

        until(complete, SECONDS_TO_RECOVER)
        return found

    def follow(self, stream: StreamRef) -> Follower:
        """Watch a stream from the beginning."""
        return Follower(f"ws://127.0.0.1:{self.live_port}", stream, self.token, after=-1)


def until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until it holds; a platform that is not there yet counts as not."""

    def holds() -> bool:
        try:
            return condition()
        except (OSError, Unavailable):
            return False

    waiting.until(holds, seconds)


_shared: list[RunningPlatform] = []
"""That of all tests of this process which need a whole one."""


def needs_platform(item: pytest.Item) -> bool:
    """Tell whether the test asks for the shared one."""
    return "platform" in getattr(item, "fixturenames", ())


def rest(*, needed: bool) -> None:
    """Stop the shared one where no test needs it, and start it again where one does.

    Idle, it has a fifth of a processor; to start it takes a minute of one.
    """
    for each in _shared:
        if needed and each.rests:
            each.start()
        elif not needed and not each.rests:
            each.stop()
        each.rests = not needed


@pytest.fixture(scope="session")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlatform]:
    """One platform for all tests that need a whole one."""
    running = RunningPlatform(tmp_path_factory.mktemp("running") / "data")
    _shared.append(running)
    yield running
    _shared.remove(running)
    if not running.rests:
        running.stop()
