"""Logs: one JSON object a line on standard error, an event's name and its facts.

However long what a stranger sends, a line of it is short; and however often, there are few of them
(`servioticy/often.py`).
"""

from __future__ import annotations

import atexit
import logging
import sys
import threading
from datetime import UTC, datetime
from typing import Any

import orjson

from servioticy.often import WINDOW_SECONDS, NotTooOften
from servioticy.tracebacks import Tracebacks

OURS = ("servioticy", "api", "ingest", "delivery", "pipeline", "functions", "sandbox")
"""What the loggers of our own events begin with."""

MAX_TEXT = 2_000
MAX_LINE = 16_384
"""Bytes; a line that would be longer has only what it is about, without its facts."""

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """`{"at":..,"level":..,"program":..,"event":..,...}`; user text is always escaped JSON."""

    def __init__(self) -> None:
        super().__init__()
        self._tracebacks = Tracebacks()

    def format(self, record: logging.LogRecord) -> str:
        """Return one line for a record, whatever it holds."""
        facts = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "program": record.name,
            "event": record.getMessage(),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD},
        }
        told = {name: _cut(value) for name, value in facts.items()}
        if record.exc_info:
            error = record.exc_info[1]
            if error is not None:
                told = {**self._tracebacks.facts(record.getMessage(), error), **told}
        line = _dumped(told)
        if len(line) > MAX_LINE:
            kept = ("at", "level", "program", "event", "suppressed", "error", "place", "traceback")
            less = {name: told[name] for name in kept if name in told}
            line = _dumped({**less, "bytes": len(line)})
        return line.decode()


def _dumped(facts: dict[str, Any]) -> bytes:
    try:
        return orjson.dumps(facts, default=str, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # what JSON has no word for, such as very large numbers
        return orjson.dumps({name: _cut(str(value)) for name, value in facts.items()})


def _cut(value: Any) -> Any:
    """Return a text without what is too much of it; no half of a surrogate pair leaves."""
    if not isinstance(value, str):
        return value
    text = value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}..."
    return text.encode(errors="replace").decode()


def configure(level: str) -> None:
    """Send our own events to standard error from this level on, others from WARNING."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    often = NotTooOften(handler.emit)
    handler.addFilter(often)
    _tell_now_and_then(often)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in OURS:
        logging.getLogger(name).setLevel(level)


def _tell_now_and_then(often: NotTooOften) -> None:
    """Tell of what was suppressed though nothing else is told, and at the end."""

    def tell() -> None:
        while not ended.wait(WINDOW_SECONDS):
            often.tick()

    ended = threading.Event()
    atexit.register(often.flush)
    threading.Thread(target=tell, name="logs", daemon=True).start()
