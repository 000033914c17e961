"""Receivers of atoms over HTTP, under the rules of all callbacks: nobody inside is called.

A name is resolved once, all of its addresses are checked, and the connection is made to these. No
redirect is followed, no proxy is asked, and an answer is read to a short end. An attempt has one
deadline, whatever resolvers and receivers do meanwhile: a limit for each part would be none.
"""

from __future__ import annotations

import functools
import http.client
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from servioticy.domain.outside_addresses import ForbiddenAddress, Rules

CONNECT_SECONDS = 3.0
SECONDS = 5.0
"""For all of an attempt: an instance waits so long for a receiver."""
MOST_RESOLVING, MAX_OF_A_TENANT = 32, 4
"""Names that are looked for at a time, and those of one tenant: whose names nobody answers for
keeps these places, and no others."""
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
        self._resolving = threading.Condition()
        self._resolving_of: Counter[int] = Counter()
        """Names that are looked for at this moment, by tenant."""

    def post(self, whose: int, url: str, body: bytes, headers: Mapping[str, str]) -> Outcome:
        """Send a tenant's JSON once, and return what came of it; nothing is raised."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
            is_secure = parts.scheme == "https"
            port = port or (443 if is_secure else 80)
            self._rules.check_literal(host, port)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            told = {"Content-Type": "application/json", "User-Agent": AGENT, **headers}
            with _Deadline(SECONDS) as deadline:
                addresses = self._addresses(whose, host, port, deadline)
                connection = _connected(host, port, addresses, is_secure, deadline)
                connection.request("POST", path, body, told)
                with closing(connection), connection.getresponse() as response:
                    deadline.left()  # an end of what it says may be ours
                    _read_away(response)
                    return Outcome(response.status, response.reason[:200])
        except ForbiddenAddress as error:
            return Outcome(0, str(error), is_forbidden=True)
        except TimeoutError:
            return Outcome(0, f"no answer within {SECONDS:g} seconds")
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Outcome(0, f"{type(error).__name__}: {error}"[:200])

    def _addresses(self, whose: int, host: str, port: int, deadline: _Deadline) -> list[str]:
        """Return those of a host, all of which may be called. Raises OSError.

        Nobody can be told to stop looking for a name: who takes too long goes on by itself, and
        keeps its tenant's place. So many may do that; for others of that tenant there is no time.
        """
        self._take_place(whose, deadline)
        found: list[Any] = []
        failed: list[OSError] = []
        done = threading.Event()

        def resolve() -> None:
            try:
                found.extend(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            except OSError as error:
                failed.append(error)
            except UnicodeError as error:  # a name that is none
                failed.append(OSError(str(error)))
            finally:
                self._give_place(whose)
                done.set()

        try:
            threading.Thread(target=resolve, name="resolving", daemon=True).start()
        except RuntimeError as error:  # the machine has no more threads
            self._give_place(whose)
            raise OSError(str(error)) from error
        if not done.wait(deadline.left()):
            raise TimeoutError
        if failed:
            raise failed[0]
        addresses = [str(address[0]) for *_, address in found]
        for each in addresses:  # whoever mixes public and private ones is up to something
            self._rules.check(each.partition("%")[0], port)
        return list(dict.fromkeys(addresses))

    def _take_place(self, whose: int, deadline: _Deadline) -> None:
        """Wait for one to look for a name. Raises TimeoutError."""

        def is_free() -> bool:
            own = self._resolving_of
            return own[whose] < MAX_OF_A_TENANT and own.total() < MOST_RESOLVING

        with self._resolving:
            if not self._resolving.wait_for(is_free, deadline.left()):
                raise TimeoutError
            self._resolving_of[whose] += 1

    def _give_place(self, whose: int) -> None:
        with self._resolving:
            self._resolving_of[whose] -= 1
            if not self._resolving_of[whose]:
                del self._resolving_of[whose]
            self._resolving.notify_all()


class _Deadline:
    """Ends a connection when its time is over, whatever is done with it then, as TimeoutError."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._held: socket.socket | None = None
        self._is_over = False
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        self._timer.cancel()
        with self._lock:
            held, self._held = self._held, None
        if held is not None:
            held.close()
        is_over = self._is_over or time.monotonic() >= self._until
        if is_over and isinstance(error, (OSError, http.client.HTTPException, ValueError)):
            raise TimeoutError from error

    def left(self) -> float:
        """Return how many seconds there are. Raises TimeoutError where there are none."""
        left = self._until - time.monotonic()
        if left <= 0 or self._is_over:
            raise TimeoutError
        return left

    def hold(self, connected: socket.socket) -> None:
        """End this one, in the place of the one before. Raises TimeoutError."""
        with self._lock:
            self._held = connected
        self.left()

    def _cut(self) -> None:
        with self._lock:
            self._is_over = True
            if self._held is not None:
                with suppress(OSError):  # as it is: what TLS has to say would be waited for
                    socket.socket.shutdown(self._held, socket.SHUT_RDWR)


def _connected(
    host: str, port: int, addresses: list[str], is_secure: bool, deadline: _Deadline
) -> http.client.HTTPConnection:
    """Return a connection to one of these. Raises OSError."""
    last: OSError = OSError("it has no address")
    for each in addresses:
        try:
            connected = socket.create_connection(
                (each, port), min(CONNECT_SECONDS, deadline.left())
            )
        except OSError as error:
            last = error
            deadline.left()
            continue
        deadline.hold(connected)
        connected.settimeout(SECONDS)
        connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
        connection.sock = connected
        if is_secure:
            secure = _context().wrap_socket(
                connected, server_hostname=host, do_handshake_on_connect=False
            )
            deadline.hold(secure)
            secure.do_handshake()
            connection.sock = secure
        return connection
    raise last


@functools.cache
def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _read_away(response: http.client.HTTPResponse) -> None:
    """Read a short answer; who says more, or says it slowly, is cut off: what it was is known."""
    size = 0
    with suppress(OSError, http.client.HTTPException, ValueError):
        while size <= MAX_ANSWER_BYTES:
            part = response.read1(8_192)
            if not part:
                return
            size += len(part)
