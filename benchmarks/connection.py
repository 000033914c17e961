"""The connection whose requests are measured, on the standard library's http.client.

httpx, which `servioticy.client` stands on, takes about 0.4 ms of processor time more a request
than http.client. That would be in a measured latency, and on one machine it would be taken
from the platform that is measured. So it is http.client here, and the client everywhere else.
"""

from __future__ import annotations

import http.client
from typing import Any

import orjson

from servioticy.settings import Settings
from servioticy.settings.places import reachable

ANSWER_SECONDS = 30.0

NoAnswer = (OSError, http.client.HTTPException)
"""What is raised where no whole answer comes."""


class Connection:
    """One kept connection to the REST API, for one thread. After `close` it opens again."""

    def __init__(
        self,
        settings: Settings,
        token: str,
        answer_seconds: float = ANSWER_SECONDS,
        content_type: str = "application/json",
    ) -> None:
        self._connection = http.client.HTTPConnection(
            reachable(settings.host), settings.api.port, timeout=answer_seconds
        )
        self._headers = {"Authorization": token, "Content-Type": content_type}

    def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return status and body of the answer. Raises one of NoAnswer, and is closed then."""
        try:
            self._connection.request(method, path, body, self._headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except NoAnswer:
            self.close()
            raise

    def put(self, service_object: str, stream: str, value: float, timestamp: int) -> None:
        """Send an update with one channel `v`. Raises RuntimeError where it is not accepted."""
        update = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
        self._put(f"/{service_object}/streams/{stream}", update, 202)

    def change(self, service_object: str, document: dict[str, Any]) -> None:
        """Put another document in force. Raises RuntimeError where it is refused."""
        self._put(f"/{service_object}", document, 200)

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def _put(self, path: str, document: dict[str, Any], expected: int) -> None:
        status, body = self.request("PUT", path, orjson.dumps(document))
        if status != expected:
            raise RuntimeError(f"PUT {path}: {status} {body.decode(errors='replace')}")
