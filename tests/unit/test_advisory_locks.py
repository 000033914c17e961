"""Numbers of advisory locks: two of a kind would wait for each other for ever."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = ("api", "ingest", "broker", "delivery", "functions", "pipeline", "servioticy")


def test_each_lock_has_a_number_of_its_own() -> None:
    """Delivery once held the lock of changes, and nobody could create anything; and once that of
    fleets, and no group was ever followed."""
    files = [each for program in PROGRAMS for each in (ROOT / program).rglob("*.py")]
    text = "\n".join(each.read_text(encoding="utf-8") for each in files)
    numbers = re.findall(r"^_\w+ = (7_305_[\d_]+)", text, re.MULTILINE)

    assert len(numbers) > 3
    assert len(numbers) == len(set(numbers))
