"""`python -m monitoring.applications.entering MODULE:FUNCTION [ARGUMENT ...]`: runs it.

A signal to end is met as `sys.exit` is, so that what was measured gets out.
"""

from __future__ import annotations

import importlib
import signal
import sys
from collections.abc import Callable
from typing import Any

ENDED_BY_SIGNAL = 143


class NoEntry(Exception):
    """There is no such function; the message says what is missing."""


def entry(text: str) -> Callable[[], Any]:
    """Load what an entry names. Raises NoEntry, and whatever the module does."""
    module, colon, path = text.partition(":")
    if not module or not colon or not path:
        raise NoEntry(f"{text} is no entry: it has to be MODULE:FUNCTION")
    found: Any = importlib.import_module(module)
    for each in path.split("."):
        if not hasattr(found, each):
            raise NoEntry(f"{module} has no {path}")
        found = getattr(found, each)
    if not callable(found):
        raise NoEntry(f"{text} cannot be called")
    return found  # type: ignore[no-any-return]


def main() -> None:
    """Run it with the arguments of the command line in its `sys.argv`."""
    text = sys.argv.pop(1)
    sys.argv[0] = text
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ENDED_BY_SIGNAL))
    sys.exit(entry(text)())


if __name__ == "__main__":
    main()
