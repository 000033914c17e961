"""`python -m demonstration`: what `servioticy up --demo` starts."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading

from command import found
from command.up import ENDS_WITH_STDIN
from demonstration import scenario
from servioticy.errors import ServioticyError
from servioticy.settings import load


def main() -> int:
    """Play the scenario; an expected failure is one line and exit code 1."""
    parser = argparse.ArgumentParser("demonstration", description=__doc__)
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--again", action="store_true")
    parser.add_argument(
        "--last",
        action="store_true",
        help="nothing comes after it: check all values, exit code 1 if one is wrong",
    )
    parser.add_argument(ENDS_WITH_STDIN, action="store_true")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if chosen.ends_with_stdin:
        threading.Thread(target=_end_with_stdin, daemon=True).start()
    try:
        right = scenario.play(found.of(load()), chosen.speed, chosen.again, not chosen.last)
    except ServioticyError as error:
        sys.stderr.write(f"error: the demonstration ends: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0 if right else 1


def _end_with_stdin() -> None:
    """The platform holds the other end: when it is gone, however it went, so are we."""
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # followers sleep on their sockets; nothing of theirs needs an orderly end
