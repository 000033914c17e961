"""Clients of several processes of a program: whenever one is gone they go to the next."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import threading
import time
from collections.abc import Sequence
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

PAUSE_SECONDS = 0.2
ANSWER_SECONDS = 30.0


class Requests:
    """Asks by HTTP, each time the next process."""

    def __init__(self, ports: Sequence[int], token: str) -> None:
        self._ports = itertools.cycle(ports)
        self._headers = {"Authorization": token, "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and what was said; 0 where nobody answers."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", next(self._ports), timeout=ANSWER_SECONDS
        )
        said = json.dumps(body) if body is not None else None
        try:
            connection.request(method, path, said, self._headers)
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content else None
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()

    def until_accepted(self, method: str, path: str, body: Any, *good: int) -> Any:
        """Ask until it is accepted; what cannot be taken at the moment is said again."""
        while True:
            status, said = self.ask(method, path, body)
            if status in good:
                return said
            assert status in (0, 429, 500, 502, 503, 504), (status, said)
            time.sleep(PAUSE_SECONDS)


class Puller(Requests):
    """Fetches what a `pull` subscription has, and acknowledges it, in a thread."""

    def __init__(self, ports: Sequence[int], token: str, subscription: str) -> None:
        super().__init__(ports, token)
        self.got: list[int] = []
        self._path = f"/subscriptions/{subscription}"
        self._stop = threading.Event()
        self._pulling = threading.Thread(target=self._pull, daemon=True)
        self._pulling.start()

    def _pull(self) -> None:
        while not self._stop.is_set():
            status, found = self.ask("GET", f"{self._path}/updates?wait=1&limit=50")
            if status == 200 and found["updates"]:
                self.got += [each["update"]["lastUpdate"] for each in found["updates"]]
                # Of two processes one may be gone: it would be asked each time, else.
                path, last = f"{self._path}/acknowledgements", {"id": found["cursor"]}
                self.until_accepted("POST", path, last, 200)
            elif status != 200:
                time.sleep(PAUSE_SECONDS)

    def close(self) -> None:
        """Ask no more."""
        self._stop.set()
        self._pulling.join()


class MqttRoamer:
    """An MQTT client of one name that subscribes, and publishes with acknowledgements."""

    def __init__(self, ports: Sequence[int], token: str, name: str, *topics: str) -> None:
        self.got: list[int] = []
        self.acknowledged = 0
        self.connections = 0
        self._topics = topics
        self._stop = threading.Event()
        self._client = mqtt.Client(CallbackAPIVersion.VERSION2, name, reconnect_on_failure=False)
        self._client.username_pw_set("device", token)
        self._client.on_connect = self._connected
        self._client.on_message = self._came
        self._client.on_publish = self._published
        self._talking = threading.Thread(target=self._talk, args=(ports,), daemon=True)
        self._talking.start()

    def publish(self, topic: str, payload: bytes) -> None:
        """Publish; it is said again until it is acknowledged."""
        self._client.publish(topic, payload, 1)

    def close(self) -> None:
        """Go."""
        self._stop.set()
        self._client.disconnect()
        self._talking.join()

    def _talk(self, ports: Sequence[int]) -> None:
        for port in itertools.cycle(ports):
            if self._stop.is_set():
                return
            with contextlib.suppress(OSError):
                self._client.connect("127.0.0.1", port, keepalive=10)
                self._client.loop_forever()
            self._stop.wait(PAUSE_SECONDS)

    def _connected(self, client: mqtt.Client, _d: Any, _f: Any, reason: Any, _p: Any) -> None:
        if not reason.is_failure:
            self.connections += 1
            if self._topics:
                client.subscribe([(each, 1) for each in self._topics])

    def _came(self, _client: Any, _data: Any, message: mqtt.MQTTMessage) -> None:
        self.got.append(json.loads(message.payload)["lastUpdate"])

    def _published(self, *_: Any) -> None:
        self.acknowledged += 1
