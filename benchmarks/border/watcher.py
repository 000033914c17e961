"""A reader's socket, and when what came there came."""

from __future__ import annotations

import contextlib
import threading
import time
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

    def __init__(self, settings: Settings, token: str, stream: StreamRef) -> None:
        self.arrived: dict[int, float] = {}
        """by timestamp"""
        self._socket: ClientConnection = connect(
            f"ws://{reachable(settings.host)}:{settings.delivery.port}/{stream.service_object}"
            f"/streams/{stream.stream}/live",
            additional_headers={"Authorization": token},
            compression=None,
            open_timeout=CONNECT_SECONDS,
        )
        self._thread = threading.Thread(target=self._listen, daemon=True)

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
