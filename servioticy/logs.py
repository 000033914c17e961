"""Logs: one JSON object a line on standard error, an event's name and its facts."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime

import orjson

OURS = ("servioticy", "api", "delivery", "pipeline", "sandbox")
"""What the loggers of our own events begin with."""

_STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """`{"at":..,"level":..,"program":..,"event":..,...}`; user text is always escaped JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line for a record, whatever it holds."""
        facts = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "program": record.name,
            "event": record.getMessage(),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD},
        }
        if record.exc_info:
            facts["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(facts, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def configure(level: str) -> None:
    """Send our own events to standard error from this level on, others from WARNING."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in OURS:
        logging.getLogger(name).setLevel(level)
