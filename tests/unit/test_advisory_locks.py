"""Numbers of advisory locks: two of a kind would wait for each other for ever."""

from __future__ import annotations

import re
from pathlib import Path

STORAGE = Path(__file__).parents[2] / "servioticy" / "storage"


def test_each_lock_has_a_number_of_its_own() -> None:
    """Delivery once held the lock of changes, and nobody could create anything."""
    text = "\n".join(each.read_text(encoding="utf-8") for each in STORAGE.glob("*.py"))
    numbers = re.findall(r"^_\w+ = (7_305_[\d_]+)", text, re.MULTILINE)

    assert len(numbers) > 2
    assert len(numbers) == len(set(numbers))
