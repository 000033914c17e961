"""The innocent tenant: a device, a chain of two composites, and somebody who watches it."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from typing import Any

import orjson
from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

from benchmarks import ground
from benchmarks.attacks.arrivals import Sent
from benchmarks.attacks.attacker import Place
from benchmarks.connection import Connection, NoAnswer
from benchmarks.ground import chain

PERIOD_SECONDS = 0.1
UPDATES_A_CONNECTION = 10
"""Devices sleep and come back: whoever takes all connections keeps them out."""

ANSWER_SECONDS = 15.0
HANDSHAKE_SECONDS = 2.0
PAUSE_SECONDS = 0.2
PERIOD_OF_CHANGES = 1.0


class Innocent:
    """Sends an update now and then and notes when its derived value arrives.

    Unless it only sends, it also opens another socket and changes a second, public Service
    Object every second; what is refused there, or takes too long, is counted in `turned_away`.

    The clock of an update starts when it is due, so one that waits for its predecessor's
    answer has waited. `sent` grows while it works; the n-th update has the timestamp n + 1.
    """

    def __init__(
        self,
        place: Place,
        period: float = PERIOD_SECONDS,
        composites: int = 2,
        *,
        only_sends: bool = False,
    ) -> None:
        """Make the Service Object, which is public. Raises ServioticyError where it cannot."""
        self._place = place
        self._period = period
        self.sends, self.watched = "s0", f"s{composites}"
        with ground.client(place.settings, place.token) as client:
            self.service_object = client.create({**chain(composites), "public": "true"})
            self.changed_object = client.create({**chain(1), "public": "true"})
        self.changes: list[float] = []
        """How many seconds each change of the second object took."""
        self.sent: list[Sent] = []
        self.turned_away = 0
        self.reopened = -1
        self._last = 0
        self._ends = threading.Event()
        self._threads = [
            threading.Thread(target=work, daemon=True)
            for work in (self._send, self._listen, self._come_back, self._change)[
                : 2 if only_sends else None
            ]
        ]
        self._watches = threading.Event()

    def start(self) -> None:
        """Watch, then send until `stop`."""
        for each in self._threads:
            each.start()

    def stop_sending(self) -> None:
        """No more updates; what is on its way may still arrive."""
        self._ends.set()
        self._threads[0].join(ANSWER_SECONDS + 1)

    def missing(self) -> int:
        """Return updates that have not come out."""
        return sum(each.arrived is None for each in list(self.sent))

    def oldest(self) -> float:
        """Return the seconds since the oldest update was due that has not come out.

        0 if there is none.
        """
        missing = (each.due for each in list(self.sent) if each.arrived is None)
        return max(0.0, time.perf_counter() - next(missing, time.perf_counter()))

    def _send(self) -> None:
        self._watches.wait(10)
        began, connection = time.perf_counter(), self._connection()
        while not self._ends.is_set():
            number = len(self.sent)
            due = began + number * self._period
            if self._ends.wait(max(0.0, due - time.perf_counter())):
                return
            if number % UPDATES_A_CONNECTION == 0:
                connection.close()  # the next request opens it anew
            update = Sent(due)
            self.sent.append(update)
            update.answer = self._put(connection, number + 1)
            update.answered = time.perf_counter()

    def _put(self, connection: Connection, timestamp: int) -> str:
        update = {"channels": {"v": {"current-value": 1}}, "lastUpdate": timestamp}
        return self._asked(connection, f"/{self.service_object}/streams/{self.sends}", update)

    def _change(self) -> None:
        """Put another document in force every second: changes have to go on, too."""
        for number in itertools.count():
            if self._ends.wait(PERIOD_OF_CHANGES):
                return
            began, connection = time.perf_counter(), self._connection()
            document = {**chain(1), "public": "true"}
            document["streams"]["s1"]["channels"]["v"]["current-value"] = f"s0=>{number}"
            answer = self._asked(connection, f"/{self.changed_object}", document)
            connection.close()
            self.changes.append(time.perf_counter() - began)
            self.turned_away += answer != "200"

    def _asked(self, connection: Connection, path: str, body: dict[str, Any]) -> str:
        """PUT it; the status, or the name of what went wrong."""
        try:
            return str(connection.request("PUT", path, orjson.dumps(body))[0])
        except NoAnswer as error:
            return type(error).__name__

    def _listen(self) -> None:
        while not self._watches.is_set() or not self._everything_came():
            with (
                contextlib.suppress(OSError, WebSocketException),
                self._open(self._last) as socket,
            ):
                self.reopened += 1
                self._watches.set()
                while not self._everything_came():
                    with contextlib.suppress(TimeoutError):
                        self._came(socket.recv(timeout=PAUSE_SECONDS))
            time.sleep(PAUSE_SECONDS)

    def _everything_came(self) -> bool:
        """Not before the last one has been sent."""
        is_sending = not self._ends.is_set() or self._threads[0].is_alive()
        return not is_sending and not self.missing()

    def _came(self, frame: str | bytes) -> None:
        now = time.perf_counter()
        timestamp = orjson.loads(frame)["lastUpdate"]
        update = self.sent[timestamp - 1]
        if update.arrived is None:
            update.arrived = now
        self._last = max(self._last, timestamp)

    def _come_back(self) -> None:
        """Open another socket every second: those who come now have to be let in, too."""
        while not self._ends.wait(1.0):
            try:
                self._open(self._last).close()
            except (OSError, WebSocketException):
                self.turned_away += 1

    def _open(self, after: int) -> ClientConnection:
        return connect(
            f"ws://{self._place.host}:{self._place.settings.delivery.port}/{self.service_object}"
            f"/streams/{self.watched}/live?after={after}",
            additional_headers={"Authorization": self._place.token},
            compression=None,
            open_timeout=HANDSHAKE_SECONDS,
            close_timeout=HANDSHAKE_SECONDS,
        )

    def _connection(self) -> Connection:
        return Connection(self._place.settings, self._place.token, ANSWER_SECONDS)
