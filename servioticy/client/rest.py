"""A client of the REST API; the only importer of httpx."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Self
from urllib.parse import quote

import httpx

from servioticy.client.answers import Answer, Answered, reason_in
from servioticy.errors import ServioticyError, Unavailable

TRIES = 6
FIRST_PAUSE_SECONDS = 0.1
TIMEOUT_SECONDS = 15.0

HEALING = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE)
"""What the API answers, or a proxy in its place, while a part of it starts again."""

# It would tell of every request.
logging.getLogger("httpx").setLevel(logging.WARNING)


class Rest:
    """One API and one token, with a connection that is kept between requests.

    `url` is its address without a path, as "http://127.0.0.1:8080". To be used by one thread.
    """

    def __init__(self, url: str, token: str, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        # A proxy for the internet has no business between us and this platform. Certificates
        # are read only where somebody has to be trusted: that takes longer than a request.
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": token, "Accept-Encoding": "identity"},
            timeout=timeout_seconds,
            trust_env=False,
            verify=url.startswith("https:"),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create(self, document: Mapping[str, Any]) -> str:
        """Create a Service Object and return its id."""
        return str(self.ask("POST", "/", document).json()["id"])

    def change(self, service_object: str, document: Mapping[str, Any]) -> None:
        """Put another document of a Service Object in force."""
        self.ask("PUT", f"/{quote(service_object, safe='')}", document)

    def put(self, service_object: str, stream: str, update: Mapping[str, Any]) -> None:
        """Send a Sensor Update; returns when the platform has it for good."""
        self.ask("PUT", _stream(service_object, stream), update)

    def ids(self) -> list[str]:
        """Return the tenant's Service Objects."""
        return list(self.ask("GET", "/").json())

    def updates(self, service_object: str, stream: str) -> list[dict[str, Any]]:
        """Return everything stored of a stream, oldest first."""
        found = self.ask("GET", _stream(service_object, stream)).json()
        return [] if found is None else list(found["data"])

    def last_timestamp(self, service_object: str, stream: str) -> int | None:
        """Return the stream's newest `lastUpdate`, or None."""
        found = self.ask("GET", f"{_stream(service_object, stream)}/lastUpdate").json()
        return None if found is None else int(found["data"][0]["lastUpdate"])

    def ask(self, method: str, path: str, document: Any = None) -> Answer:
        """Ask, and where a part of the platform is being restarted, again a little later.

        A PUT twice is harmless: the same timestamp overwrites. Raises Answered where the
        answer is an error that stays, Unavailable where none came in TRIES tries.
        """
        problem = ""
        for attempt in range(TRIES):
            if attempt:
                time.sleep(FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
            try:
                answer = self.request(method, path, document)
            except Unavailable as error:
                problem = str(error)
                continue
            if answer.status < HTTPStatus.BAD_REQUEST:
                return answer
            if answer.status not in HEALING:
                raise Answered.of(answer)
            problem = reason_in(answer.body) or problem
        raise Unavailable(f"the API does not take {method} {path}: {problem}")

    def request(
        self,
        method: str,
        path: str,
        document: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask once and return the answer, whatever it is; a `document` is sent as JSON.

        Raises Unavailable where no whole answer comes, ServioticyError where the request
        itself cannot be sent.
        """
        sent = dict(headers or {})
        body = None
        if document is not None:
            body = json.dumps(document).encode()
            sent.setdefault("Content-Type", "application/json")
        try:
            answer = self._http.request(method, path, content=body, headers=sent)
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.InvalidURL) as error:
            raise ServioticyError(f"{method} {path} cannot be sent: {error}") from error
        except httpx.TransportError as error:
            raise Unavailable(str(error) or type(error).__name__) from error
        return Answer(answer.status_code, dict(answer.headers), answer.content)

    def close(self) -> None:
        """Let the connection go."""
        self._http.close()


def _stream(service_object: str, stream: str) -> str:
    return f"/{quote(service_object, safe='')}/streams/{quote(stream, safe='')}"
