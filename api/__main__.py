"""The REST program: `python -m api`, until SIGTERM or SIGINT."""

from __future__ import annotations

import sys

from api.server import run
from servioticy import logs, settings
from servioticy.errors import ServioticyError


def main() -> int:
    """Serve; an expected failure is one line and exit code 1."""
    try:
        chosen = settings.load()
        logs.configure(chosen.log_level)
        run(chosen)
    except ServioticyError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
