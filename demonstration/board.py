"""The composite streams in a terminal: a line each, redrawn in place, or now and then."""

from __future__ import annotations

import json
import shutil
import statistics
import threading
import time
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from demonstration.gauge import Band
from demonstration.series import Reading
from demonstration.sparkline import sparkline
from demonstration.templates import Shown

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live

WIDEST, NARROWEST = 80, 10
BESIDE_THE_LINE = 46
"""Columns of a row that are not its sparkline; a row that wraps could not be redrawn."""

LATENCIES_KEPT = 500
REDRAW_SECONDS = 0.15
PLAIN_SECONDS = 4.0
BANDS_BEGIN = "  [what is expected] of the last value, then the ones before: ▲ ▼ were outside"


class Trace:
    """A whole series in a fixed width: when it is full, neighbours become their mean."""

    def __init__(self, width: int) -> None:
        self._pairs = max(1, width // 2)
        self._per_point = 1
        self._rest: list[float] = []
        self.points: list[float] = []

    def add(self, value: float) -> None:
        """Append a value."""
        self._rest.append(value)
        if len(self._rest) < self._per_point:
            return
        self.points.append(statistics.fmean(self._rest))
        self._rest = []
        if len(self.points) == 2 * self._pairs:
            pairs = zip(self.points[::2], self.points[1::2], strict=True)
            self.points = [(one + other) / 2 for one, other in pairs]
            self._per_point *= 2


class Board:
    """What has arrived of each stream. `sent` and `seen` may be called from any thread."""

    def __init__(self, shown: tuple[Shown, ...], console: Console | None = None) -> None:
        """Draw into this terminal; print plain lines now and then where there is none."""
        self._live = None if console is None else _display(console)
        whole = shutil.get_terminal_size().columns if console is None else console.width
        columns = whole - BESIDE_THE_LINE
        self._width = max(NARROWEST, min(WIDEST, columns))
        self._traces = {each: Trace(self._width) for each in shown if not each.anomalies}
        self._bands = {each: Band(self._width) for each in shown if each.anomalies}
        self._values: dict[Shown, float | bool] = {}
        self._counts = dict.fromkeys(shown, 0)
        self._alarms = dict.fromkeys(shown, 0)
        self._alarmed: set[Shown] = set()
        self._newest: dict[tuple[Shown, str], int] = {}
        self._newest_anomaly = ""
        self._sent_at: dict[int, float] = {}
        self._latencies: deque[float] = deque(maxlen=LATENCIES_KEPT)
        self._lock = threading.Lock()
        self._next_draw = time.monotonic() + (0.0 if self._live else PLAIN_SECONDS)

    def sent(self, reading: Reading) -> None:
        """A device is about to send this."""
        with self._lock:
            self._sent_at[reading.timestamp] = time.monotonic()

    def seen(self, shown: Shown, frame: str) -> None:
        """An update of a composite stream has arrived."""
        now, update = time.monotonic(), json.loads(frame)
        values = {name: each["current-value"] for name, each in update["channels"].items()}
        with self._lock:
            self._values[shown] = values[shown.channel]
            if shown.anomalies:
                self._bands[shown].add(values[shown.channel], values["low"], values["high"])
            else:
                self._traces[shown].add(float(values[shown.channel]))
            self._counts[shown] += 1
            self._newest[shown, shown.stream] = update["lastUpdate"]
            self._count_alarm(shown, bool(values.get("anomaly")))
            sent_at = self._sent_at.get(update["lastUpdate"])
            if sent_at is not None:
                self._latencies.append((now - sent_at) * 1000)

    def flagged(self, shown: Shown, frame: str) -> None:
        """An anomaly of a series has arrived."""
        update = json.loads(frame)
        value, at = update["channels"][shown.channel]["current-value"], update["lastUpdate"]
        when = datetime.fromtimestamp(at, UTC)
        with self._lock:
            self._alarms[shown] += 1
            self._newest[shown, shown.anomalies] = at
            self._newest_anomaly = (
                f"  newest anomaly: {shown.label} {_text(value)} {shown.unit} at {when:%F %R} UTC"
            )

    def newest(self, shown: Shown, stream: str) -> int:
        """Return the largest timestamp seen of a stream; 0 before the first."""
        return self._newest.get((shown, stream), 0)

    def anomalies(self, shown: Shown) -> int:
        """Return how many anomalies of a series have arrived."""
        with self._lock:
            return self._alarms[shown]

    def last(self, shown: Shown) -> tuple[int, float | bool | None]:
        """Return how many updates of a stream have arrived, and the value of the last."""
        with self._lock:
            return self._counts[shown], self._values.get(shown)

    def median_milliseconds(self) -> float | None:
        """From a device's sending to the arrival of what was computed from it."""
        with self._lock:
            return statistics.median(self._latencies) if self._latencies else None

    def draw(self, at_once: bool = False) -> None:
        """Show the present state, if it is time for it."""
        now = time.monotonic()
        if now < self._next_draw and not at_once:
            return
        self._next_draw = now + (REDRAW_SECONDS if self._live else PLAIN_SECONDS)
        with self._lock:
            lines = self._lines()
        if self._live is None:
            print("\n".join(lines), end="\n\n", flush=True)
        else:
            self._live.update(_coloured(lines), refresh=True)

    def close(self) -> None:
        """Leave what is drawn where it is; what is printed from now on comes below."""
        if self._live is not None:
            self._live.stop()

    def _count_alarm(self, shown: Shown, alarmed: bool) -> None:
        if alarmed and shown not in self._alarmed:
            self._alarms[shown] += 1
        (self._alarmed.add if alarmed else self._alarmed.discard)(shown)

    def _lines(self) -> list[str]:
        lines = [self._line(each, self._plain(each)) for each in self._traces]
        if self._bands:
            lines.append(BANDS_BEGIN)
            lines += [self._line(each, band.drawn()) for each, band in self._bands.items()]
            lines += [self._newest_anomaly] if self._newest_anomaly else []
        return lines

    def _plain(self, shown: Shown) -> str:
        return sparkline(self._traces[shown].points, self._width)

    def _line(self, shown: Shown, drawn: str) -> str:
        what = "flagged" if shown.anomalies else "alarms"
        alarms = f", {self._alarms[shown]} {what}" if self._alarms[shown] else ""
        value = f"{_text(self._values.get(shown)):>7} {shown.unit:<3}"
        return (
            f"  {shown.label:<12}{value} {drawn:<{self._width}} {self._counts[shown]:>5}{alarms}"
        )


def _display(console: Console) -> Live:
    from rich.live import Live

    live = Live(console=console, auto_refresh=False)
    live.start()
    # It hides the cursor, and nobody would show it again if this process were killed.
    console.show_cursor(True)
    return live


def _coloured(lines: list[str]) -> Group:
    from rich.console import Group
    from rich.text import Text

    drawn = Text("\n".join(lines), no_wrap=True, overflow="crop")
    drawn.highlight_regex(r"\d+ (alarms|flagged)|[!▲▼]+", "bold red")
    drawn.highlight_regex(r"[\u2581-\u2588]+", "cyan")
    # The cursor waits below, where the next program writes if this process is killed.
    return Group(drawn, Text(""))


def _text(value: float | bool | None) -> str:
    if value is None or isinstance(value, bool):
        return {None: "-", True: "yes", False: "no"}[value]
    return f"{value:.1f}"
