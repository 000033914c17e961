"""Each advisory lock of Postgres has a number of its own, or two programs wait for each other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("api", "delivery", "pipeline", "servioticy")
NUMBER = re.compile(r"^_\w+ = ([0-9_]{10,}) +# .*any number that", re.MULTILINE)


def test_no_two_have_the_same_number() -> None:
    files = [file for room in ROOMS for file in (ROOT / room).rglob("*.py")]
    numbers = [each for file in files for each in NUMBER.findall(file.read_text("utf-8"))]

    assert len(numbers) == len(set(numbers)) >= 4
