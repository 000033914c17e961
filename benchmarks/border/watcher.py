"""A reader's socket, and when what came there came."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

import orjson
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from servioticy.domain.model import StreamRef
from servioticy.settings import Settings
from servioticy.settings.places import reachable

CONNECT_SECONDS = 10.0


class Watcher:
    """Watches one stream in a thread of its own while its block lasts."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        """Connect to where it is told: one update in each frame, with its timestamp."""
        self.arrived: dict[int, float] = {}
        """by timestamp"""
        self._socket: ClientConnection = connect(
            url,
            additional_headers=headers,
            compression=None,
            open_timeout=CONNECT_SECONDS,
        )
        self._thread = threading.Thread(target=self._listen, daemon=True)

    @classmethod
    def of(cls, settings: Settings, token: str, stream: StreamRef) -> Self:
        """One of a stream of the platform."""
        place = f"{reachable(settings.host)}:{settings.delivery.port}"
        url = f"ws://{place}/{stream.service_object}/streams/{stream.stream}/live"
        return cls(url, {"Authorization": token})

    def __enter__(self) -> Self:
        """Begin to listen."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self._socket.close()
        self._thread.join(CONNECT_SECONDS)

    def _listen(self) -> None:
        with contextlib.suppress(WebSocketException, OSError):
            for frame in self._socket:
                now = time.perf_counter()
                self.arrived.setdefault(orjson.loads(frame)["lastUpdate"], now)
