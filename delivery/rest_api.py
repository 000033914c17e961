"""The REST API, as the broker asks it: what clients publish is accepted there and nowhere else.

So a message has the same checks, quotas and promises as a PUT, and 202 means the same.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import aiohttp
import orjson
from yarl import URL

SECONDS = 60.0
CONNECTIONS = 100
MAX_ANSWER_BYTES = 1024 * 1024
RETRY_STATUSES = frozenset({0, 408, 425, 429, 502, 503, 504})
"""About the moment, not about what was sent. 0: there was no answer."""


class ApiResponse(NamedTuple):
    """What the API said."""

    status: int
    body: bytes = b""
    retry_seconds: float | None = None

    @property
    def message(self) -> str:
        """What it says of an error, for people."""
        try:
            return str(orjson.loads(self.body)["message"])
        except (orjson.JSONDecodeError, LookupError, TypeError):
            return "the platform did not answer" if not self.status else "it was refused"


class Asks(Protocol):
    """Asks the REST API: `Api` does."""

    async def ask(
        self, method: str, path: str, token: str, body: bytes, content_type: str
    ) -> ApiResponse:
        """Return what the API says; a status of 0 where nothing whole came. Raises nothing."""


class Api:
    """Asks the REST API, with the tokens of those who ask."""

    def __init__(
        self,
        url: str,
        trust: ssl.SSLContext | bool = True,
        *,
        headers: Mapping[str, str] | None = None,
        seconds: float = SECONDS,
        connections: int = CONNECTIONS,
        answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        """`trust` says whose certificate is believed where it is asked by TLS.

        `headers` are sent with every question.
        """
        self._url = url
        self._trust = trust
        self._headers = headers or {}
        self._seconds, self._connections = seconds, connections
        self._answer_bytes = answer_bytes
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Be ready to ask."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, ssl=self._trust),
            timeout=aiohttp.ClientTimeout(total=self._seconds, sock_connect=5.0),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    async def stop(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def ask(
        self, method: str, path: str, token: str, body: bytes, content_type: str
    ) -> ApiResponse:
        """Return what the API says; a status of 0 where nothing whole came. Raises nothing."""
        if self._session is None:
            return ApiResponse(0)
        headers = {"Authorization": token, "Content-Type": content_type, **self._headers}
        try:
            async with self._session.request(
                method,
                URL(self._url + path, encoded=True),
                headers=headers,
                data=body or None,
                allow_redirects=False,
            ) as response:
                answer = await _read(response, self._answer_bytes)
                if answer is None:
                    response.close()
                    return ApiResponse(413, b'{"message":"The answer is too long for a message"}')
                return ApiResponse(response.status, answer, _retry_after(response))
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError):
            return ApiResponse(0)


async def _read(response: aiohttp.ClientResponse, most: int) -> bytes | None:
    """Return an answer's body, or None where it is too long."""
    parts, size = [], 0
    async for chunk in response.content.iter_any():
        parts.append(chunk)
        size += len(chunk)
        if size > most:
            return None
    return b"".join(parts)


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    try:
        return min(30.0, max(0.1, float(response.headers["Retry-After"])))
    except (KeyError, ValueError):
        return None
