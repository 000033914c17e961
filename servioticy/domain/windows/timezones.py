"""Timezones as the IANA's database has them, of the release that is installed with the platform.

Not the machine's: all programs have to cut alike, and whoever computes the log again.
"""

from __future__ import annotations

from datetime import tzinfo
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

DATABASE = "tzdata"


@lru_cache(1)
def names() -> frozenset[str]:
    """Return the names of all timezones."""
    return frozenset((files(DATABASE) / "zones").read_text("utf-8").split())


@lru_cache
def timezone(name: str) -> tzinfo:
    """Return the timezone of a name. Raises ValueError where there is none."""
    if name not in names():
        raise ValueError(f"there is no timezone {name:.100}")
    with files(DATABASE).joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)
