"""The HTTP client that calls receivers, and bounds whatever they may do to us."""

from __future__ import annotations

import math
import ssl
import time
from collections.abc import Collection, Iterable
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import aiohttp
from yarl import URL

from delivery.callbacks.addresses import CheckedResolver
from delivery.callbacks.lookups import TENANT
from delivery.callbacks.requests import MAX_URL, Request
from servioticy.domain.outside_addresses import ForbiddenAddress, Rules

SECONDS = 15.0
CONNECT_SECONDS = 5.0
MAX_ANSWER_BYTES = 65_536
"""A receiver has nothing to tell but its status; who says more is cut off."""
MAX_WAIT_SECONDS = 3_600.0


class AttemptResult(NamedTuple):
    """What came of a request."""

    status: int
    """0: there was no answer."""
    reason: str
    retry_seconds: float | None = None
    """The receiver asks not to be called before."""


class HttpClient:
    """Calls receivers. Follows no redirect, asks no proxy, and keeps no cookies."""

    def __init__(
        self,
        networks: Iterable[str] = (),
        *,
        own_ports: Collection[int] = (),
        connections: int = 500,
    ) -> None:
        """`networks` may be called though they are not public, but for `own_ports` of ours."""
        self._rules = Rules(networks, own_ports)
        self.connections = connections
        """How many there may be at once."""
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        """Be ready to call."""
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        connector = aiohttp.TCPConnector(
            resolver=CheckedResolver(self._rules),
            use_dns_cache=False,  # what was public may be private a moment later
            limit=self.connections,
            ssl=context,
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=SECONDS, sock_connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            read_bufsize=MAX_ANSWER_BYTES,
        )

    async def stop(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def call(self, request: Request, tenant: int) -> AttemptResult:
        """Make the request, and return what came of it; nothing is raised."""
        TENANT.set(tenant)
        if self._session is None:
            return AttemptResult(0, "nobody calls yet")
        try:
            if len(request.url) > MAX_URL:
                return AttemptResult(0, f"the address has more than {MAX_URL} characters")
            url = URL(request.url)
            if url.scheme not in ("http", "https") or not url.host or len(str(url)) > MAX_URL:
                return AttemptResult(0, "this is no address to call")
            self._rules.check_literal(url.host, url.port or 0)
            async with self._session.request(
                request.method,
                url,
                headers=request.headers,
                data=request.body or None,
                allow_redirects=False,
            ) as response:
                await _read_away(response)
                return AttemptResult(
                    response.status, response.reason or "", _retry_after(response)
                )
        except ForbiddenAddress as error:
            return AttemptResult(0, str(error))
        except TimeoutError:
            return AttemptResult(0, f"no answer within {SECONDS:g} seconds")
        except aiohttp.ClientConnectorError as error:
            return AttemptResult(0, str(error.os_error))
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return AttemptResult(0, f"{type(error).__name__}: {error}"[:500])


async def _read_away(response: aiohttp.ClientResponse) -> None:
    """Read a short answer, so that the connection can be used again; close it on a long one."""
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            response.close()
            return


def _retry_after(response: aiohttp.ClientResponse) -> float | None:
    """Seconds that the receiver asks for, within reason; None where it asks for nothing."""
    text = response.headers.get("Retry-After")
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            at = parsedate_to_datetime(text).timestamp()
        except (ValueError, OverflowError):
            return None
        seconds = at - time.time()
    return None if math.isnan(seconds) else min(max(0.0, seconds), MAX_WAIT_SECONDS)
