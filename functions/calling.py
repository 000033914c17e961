"""Receivers of atoms over HTTP, under the rules of all callbacks: nobody inside is called.

A name is resolved once, all of its addresses are checked, and the connection is made to these.
No redirect is followed, no proxy is asked, and an answer is read to a short end.
"""

from __future__ import annotations

import functools
import http.client
import socket
import ssl
import time
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from servioticy.domain.outside_addresses import ForbiddenAddress, Rules

CONNECT_SECONDS = 3.0
SECONDS = 5.0
"""For all of an attempt but finding the address: an instance waits so long for a receiver."""
MAX_ANSWER_BYTES = 65_536
AGENT = "servIoTicy/1.0"


class Outcome(NamedTuple):
    """What came of an attempt."""

    status: int
    """0: there was no answer."""
    reason: str
    is_forbidden: bool = False
    """It is not to be called, now or later."""


class Caller:
    """Calls; any thread may."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        """Send JSON once, and return what came of it; nothing is raised."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
            is_secure = parts.scheme == "https"
            port = port or (443 if is_secure else 80)
            until = time.monotonic() + SECONDS
            connection = self._connected(host, port, is_secure)
            try:
                path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                told = {"Content-Type": "application/json", "User-Agent": AGENT, **headers}
                connection.request("POST", path, body, told)
                response = connection.getresponse()
                _read_away(response, until)
                return Outcome(response.status, response.reason[:200])
            finally:
                connection.close()
        except ForbiddenAddress as error:
            return Outcome(0, str(error), is_forbidden=True)
        except TimeoutError:
            return Outcome(0, f"no answer within {SECONDS:g} seconds")
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Outcome(0, f"{type(error).__name__}: {error}"[:200])

    def _connected(self, host: str, port: int, is_secure: bool) -> http.client.HTTPConnection:
        """Return a connection to an address that may be called. Raises OSError."""
        self._rules.check_literal(host, port)
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(address[0]) for *_, address in found]
        for each in addresses:  # whoever mixes public and private ones is up to something
            self._rules.check(each.partition("%")[0], port)
        last: OSError = OSError("it has no address")
        for each in dict.fromkeys(addresses):
            try:
                connected = socket.create_connection((each, port), CONNECT_SECONDS)
            except OSError as error:
                last = error
                continue
            connected.settimeout(SECONDS)
            connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
            connection.sock = connected
            if is_secure:
                try:
                    connection.sock = _context().wrap_socket(connected, server_hostname=host)
                except BaseException:
                    connected.close()
                    raise
            return connection
        raise last


@functools.cache
def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _read_away(response: http.client.HTTPResponse, until: float) -> None:
    """Read a short answer; who says more, or says it slowly, is cut off."""
    size = 0
    while size <= MAX_ANSWER_BYTES and time.monotonic() < until:
        part = response.read1(8_192)
        if not part:
            return
        size += len(part)
