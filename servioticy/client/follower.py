"""Following a stream over its WebSocket, through restarts of the platform."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from servioticy.client import urls
from servioticy.client.answers import reason_in
from servioticy.client.authorities import Authorities, believed
from servioticy.domain.model import StreamRef, Timestamp
from servioticy.domain.topics import MAX_MESSAGE_BYTES
from servioticy.errors import ServioticyError, Unavailable

FIRST_PAUSE_SECONDS = 0.2
MAX_PAUSE_SECONDS = 5.0
MILLISECONDS_FROM = 100_000_000_000
"""Timestamps are the devices' own; a number this large is not seconds (year 5138)."""


class Refused(ServioticyError):
    """The platform does not let us watch this stream; the message is its own."""


@dataclass(slots=True)
class _Followed:
    """One stream of one platform, from after a timestamp on, or from now on."""

    url: str
    """of delivery, as "ws://127.0.0.1:8081"; http and https are taken for ws and wss"""
    stream: StreamRef
    token: str
    after: Timestamp | None = None
    """the newest update seen: a new connection goes on behind it"""
    ca: Authorities = ""
    """a PEM file of the authorities that vouch for it by wss (empty: those known anyway)"""
    _ssl: ssl.SSLContext | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        self.url, self.token = urls.live(self.url), urls.token(self.token)
        if self.url.startswith("wss:"):
            self._ssl = believed(self.ca)

    def _address(self) -> str:
        after = "" if self.after is None else f"?after={self.after}"
        parts = (quote(self.stream.service_object, safe=""), quote(self.stream.stream, safe=""))
        return f"{self.url}/{parts[0]}/streams/{parts[1]}/live{after}"

    def _options(self) -> dict[str, Any]:
        # A proxy for the internet has no business between us and this platform.
        return {
            "additional_headers": {"Authorization": self.token},
            "compression": None,
            "proxy": None,
            "max_size": MAX_MESSAGE_BYTES,
            **({} if self._ssl is None else {"ssl": self._ssl}),
        }

    def _seen(self, frame: str) -> str:
        update = json.loads(frame)
        if not update.get("early"):  # its window's result is still to come, with this timestamp
            at = int(update["lastUpdate"])
            self.after = at if self.after is None else max(self.after, at)
        return frame

    def _explain(self, error: Exception, met: bool) -> None:
        """Raise what trying again cannot help against."""
        if isinstance(error, InvalidStatus) and _is_final(error.response.status_code, met):
            hint = " (a token: servioticy tenant create NAME)"
            message = reason_in(bytes(error.response.body or b"")) or "refused"
            raise Refused(message + hint * (error.response.status_code == 403)) from error
        if (
            not met
            and isinstance(error, InvalidHandshake)
            and not isinstance(error, InvalidStatus)
        ):
            raise Unavailable(f"what answers at {self.url} is not delivery: {error}") from error
        if not met and isinstance(error, ssl.SSLError):
            raise Unavailable(f"{self.url} is not believed: {error}") from error
        if not met and isinstance(error, OSError):
            raise Unavailable(
                f"nothing answers at {self.url}: is the platform running (`servioticy up`)?"
            ) from error


class Follower(_Followed):
    """Follows a stream, a thread waiting for each update."""

    def updates(self, stop: threading.Event | None = None) -> Iterator[str]:
        """Yield each update as it was emitted, until `stop`.

        A lost connection is opened again and continues after the newest update seen, so
        nothing is missed. Raises Refused, and Unavailable where the first try finds nobody.
        """
        stop = stop or threading.Event()
        pause, met = FIRST_PAUSE_SECONDS, False
        while not stop.is_set():
            try:
                with connect(self._address(), **self._options()) as connection:
                    pause, met = FIRST_PAUSE_SECONDS, True
                    yield from self._frames(connection, stop)
            except (OSError, InvalidHandshake, ConnectionClosed) as error:
                self._explain(error, met)
            stop.wait(pause)
            pause = min(MAX_PAUSE_SECONDS, pause * 2)

    def _frames(self, connection: ClientConnection, stop: threading.Event) -> Iterator[str]:
        while not stop.is_set():
            try:
                yield self._seen(str(connection.recv(timeout=0.2)))
            except TimeoutError:
                continue


class AsyncFollower(_Followed):
    """Follows a stream in a task of asyncio."""

    async def updates(self) -> AsyncIterator[str]:
        """Yield each update as it was emitted, until the task is cancelled.

        It goes on after a lost connection, and raises, as `Follower` does.
        """
        # Who follows with a thread does not wait for these to be loaded.
        import asyncio

        from websockets.asyncio.client import connect as asyncio_connect

        pause, met = FIRST_PAUSE_SECONDS, False
        while True:
            try:
                async with asyncio_connect(self._address(), **self._options()) as connection:
                    pause, met = FIRST_PAUSE_SECONDS, True
                    async for frame in connection:
                        yield self._seen(str(frame))
            except (OSError, InvalidHandshake, ConnectionClosed) as error:
                self._explain(error, met)
            await asyncio.sleep(pause)
            pause = min(MAX_PAUSE_SECONDS, pause * 2)


def _is_final(status: int, met: bool) -> bool:
    # 429: our share is used up, as when all our sockets come again at once.
    return status < 500 and not (met and status == HTTPStatus.TOO_MANY_REQUESTS)


def line(frame: str) -> str:
    """Return an update for people: its time, if its timestamp looks like one, and its channels.

    And whether the window it is of has not ended, or which revision of its result it is.
    """
    update = json.loads(frame)
    values = {name: each.get("current-value") for name, each in update["channels"].items()}
    shown = json.dumps(values, ensure_ascii=False)
    # Half a surrogate pair is no text that a terminal takes.
    shown = shown.encode(errors="backslashreplace").decode()
    revision = "  early" if update.get("early") else ""
    if "revision" in update and not revision:
        revision = f"  revision {update['revision']}"
    if update.get("retracted"):
        revision += "  retracted"
    return f"{written(update['lastUpdate'])}  {shown}{revision}"


def written(at: Timestamp) -> str:
    """Return a timestamp in seconds or milliseconds as date and time; any other as it is."""
    seconds = at / 1000 if at >= MILLISECONDS_FROM else float(at)
    if not 100_000_000 <= seconds < MILLISECONDS_FROM:
        return str(at)
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")[:19] + "Z"
