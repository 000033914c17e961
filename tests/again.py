"""Run tests; the few that fail are tried once more alone, as the machine may have been full.

    python tests/again.py PATHS... [options of pytest]

A test that passes only alone is named at the end: it is the test that is to be mended, or the race
that it found. Where more fail than may be chance, or anything else goes wrong, that is the result.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST = 5
"""Failures of one run that may be chance."""

TESTS_FAILED = 1
"""How pytest ends where tests failed, and nothing else went wrong."""

CHECKOUT = Path(__file__).parent.parent
FAILED = CHECKOUT / ".pytest_cache" / "v" / "cache" / "lastfailed"


def main(arguments: list[str]) -> int:
    """The exit status of pytest, of its second run where there was one."""
    FAILED.unlink(missing_ok=True)
    status = pytest(arguments)
    failed = sorted(json.loads(FAILED.read_text())) if FAILED.exists() else []
    if status == TESTS_FAILED and not all(map(is_test, failed)):
        say("what was collected differs from worker to worker, or failed; what differs is above")
        return status
    if status != TESTS_FAILED or not 0 < len(failed) <= MOST:
        return status
    say(f"{len(failed)} failed, each is tried once more alone")
    status = pytest([*failed, "-n", "0", "-p", "no:cacheprovider"])
    if status == 0:
        say("\n  ".join(["these passed only alone, which is a fault to be found:", *failed]))
    return status


def is_test(name: str) -> bool:
    """Tell whether it is that of a test; else a worker has failed, or a whole file."""
    return "::" in name


def say(text: str) -> None:
    sys.stderr.write(f"\nagain: {text}\n")


def pytest(arguments: list[str]) -> int:
    return subprocess.call([sys.executable, "-m", "pytest", *arguments], cwd=CHECKOUT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
