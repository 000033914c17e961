"""A plain client of the REST API: what any device could do with a standard library."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any
from urllib.parse import quote

from servioticy.errors import ServioticyError, Unavailable

TRIES = 6
TIMEOUT_SECONDS = 15.0


class Answered(ServioticyError):
    """The API answered with an error; `status` and message are its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"the API answered {status}: {message}")
        self.status = status


class Rest:
    """One kept connection for one thread."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
        self._headers = {"Authorization": token, "Content-Type": "application/json"}

    def create(self, document: dict[str, Any]) -> str:
        """Create a Service Object and return its id."""
        return str(json.loads(self._ask("POST", "/", document))["id"])

    def put(self, service_object: str, stream: str, update: dict[str, Any]) -> None:
        """Send a Sensor Update; returns when the platform has it for good."""
        self._ask("PUT", f"/{service_object}/streams/{quote(stream)}", update)

    def ids(self) -> list[str]:
        """The tenant's Service Objects."""
        return list(json.loads(self._ask("GET", "/")))

    def updates(self, service_object: str, stream: str) -> list[dict[str, Any]]:
        """Everything stored of a stream, oldest first."""
        body = self._ask("GET", f"/{service_object}/streams/{quote(stream)}")
        return list(json.loads(body)["data"]) if body else []

    def last_timestamp(self, service_object: str, stream: str) -> int | None:
        """The stream's newest `lastUpdate`, or None."""
        body = self._ask("GET", f"/{service_object}/streams/{quote(stream)}/lastUpdate")
        return int(json.loads(body)["data"][0]["lastUpdate"]) if body else None

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def _ask(self, method: str, path: str, document: dict[str, Any] | None = None) -> bytes:
        """Ask; where a part of the platform is being restarted, ask again a little later.

        A PUT twice is harmless: the same timestamp overwrites. Raises Answered, Unavailable.
        """
        body = None if document is None else json.dumps(document).encode()
        problem = ""
        for attempt in range(TRIES):
            try:
                status, answer = self._once(method, path, body)
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                status, answer, problem = 503, b"", str(error)
            if status < 400:
                return answer
            problem = _message(answer) or problem
            if status not in (502, 503):
                raise Answered(status, problem)
            time.sleep(0.1 * 2**attempt)
        raise Unavailable(f"the API does not take {method} {path}: {problem}")

    def _once(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        self._connection.request(method, path, body, self._headers)
        response = self._connection.getresponse()
        return response.status, response.read()


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, KeyError, TypeError):
        return answer.decode(errors="replace")[:200]
