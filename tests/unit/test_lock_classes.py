"""Locks of Postgres that are told by a class of ours: no two kinds of them share one."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

STORAGE = Path(__file__).parents[2] / "servioticy" / "storage"


def test_each_class_of_advisory_locks_is_one_kind() -> None:
    """With one of another kind nobody would begin a partition, or two would hold it."""
    texts = [each.read_text("utf-8") for each in STORAGE.glob("*.py")]
    found = Counter(re.findall(r"\b(1_701_\d{3})\b", "\n".join(texts)))

    assert len(found) >= 4
    assert set(found.values()) == {1}
