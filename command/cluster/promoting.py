"""Letting the standby take the primary's place: `python -m command.cluster.promoting`."""

from __future__ import annotations

import sys
import time

from servioticy.embedded.folder import read_run
from servioticy.errors import ServioticyError
from servioticy.settings import load
from servioticy.storage import standbys
from servioticy.storage.database import Database


def main() -> int:
    """Fence, then promote; an expected failure is one line and exit code 1."""
    try:
        facts = read_run(load().data_path) or {}
        old, new = map(Database, facts["stores"])
        began = time.monotonic()
        standbys.fence(old)
        standbys.promote(new)
    except ServioticyError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.write(f"the standby is the primary ({time.monotonic() - began:.1f} s)\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
