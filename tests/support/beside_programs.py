"""A second process of each program that may have several, beside those of a running platform."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from running_platform import RunningPlatform

from servioticy.embedded import tcp_ports as ports
from servioticy.embedded.folder import read_run

SEVERAL = ("api", "delivery", "broker")
AGAIN_SECONDS = 1.0
"""After which one that has ended is started again, as a supervisor does."""


class Beside:
    """One of each, on ports of their own, started again whenever they end."""

    def __init__(self, platform: RunningPlatform) -> None:
        self.platform = platform
        self.api_port, self.live_port, self.mqtt_port = (ports.free() for _ in range(3))
        facts = read_run(platform.data) or {}
        self._environment = {
            **platform.environment,
            "SERVIOTICY_DSN": str(facts["dsn"]),
            "SERVIOTICY_BOOTSTRAP_SERVERS": str(facts["bootstrap_servers"]),
            "SERVIOTICY_API_PORT": str(self.api_port),
            "SERVIOTICY_LIVE_PORT": str(self.live_port),
            "SERVIOTICY_MQTT_PORT": str(self.mqtt_port),
            **{f"SERVIOTICY_{name}_METRICS_PORT": "0" for name in ("API", "LIVE", "MQTT")},
        }
        self._stop = threading.Event()
        self._programs = {name: self._started(name) for name in SEVERAL}
        self._keeping = threading.Thread(target=self._keep, daemon=True)
        self._keeping.start()

    @property
    def api_ports(self) -> tuple[int, int]:
        """Where the API is reached."""
        return self.platform.api_port, self.api_port

    @property
    def live_ports(self) -> tuple[int, int]:
        """Where delivery is reached."""
        return self.platform.live_port, self.live_port

    @property
    def mqtt_ports(self) -> tuple[int, int]:
        """Where the broker is reached."""
        return self.platform.mqtt_port, self.mqtt_port

    def kill(self, name: str, which: int) -> None:
        """End the platform's own (0) or the one beside it (1); harmless where it is gone."""
        pid = self._programs[name].pid if which else self.platform.pids().get(name, 0)
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        """End all of them."""
        self._stop.set()
        self._keeping.join()
        for each in self._programs.values():
            each.kill()
            each.wait(60)

    def _keep(self) -> None:
        while not self._stop.wait(AGAIN_SECONDS):
            for name, program in list(self._programs.items()):
                if program.poll() is not None:
                    self._programs[name] = self._started(name)

    def _started(self, name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", name],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stderr=self.platform.output,
        )


@contextmanager
def beside(platform: RunningPlatform) -> Iterator[Beside]:
    """Two of each program, until the end."""
    found = Beside(platform)
    try:
        yield found
    finally:
        found.stop()
