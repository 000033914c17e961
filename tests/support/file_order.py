"""In which order the files of tests come that start whole programs, and wait for them.

Workers take one file after the other. Those that need the shared platform come first, so that it
does not run beside the others; among these, what readers do by the pages of docs, on a platform on
which nobody has killed anything yet. The others come by how long they may take, so that no worker
is left with a long one at the end.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from running_platform import needs_platform as asks_for_it

ROOMS = {"end_to_end", "faults"}
USUAL_SECONDS = 600.0
"""After which a test is given up that does not say that it may take longer."""

_of_platform: set[Path] = set()


def needs_platform(file: Path) -> bool:
    """Tell whether a test of the file asks for the shared platform, of those that are run."""
    return file in _of_platform


def sort(items: list[pytest.Item]) -> None:
    """Put those of the second half in order; each file's stay together, and as they were."""
    seconds: dict[Path, float] = defaultdict(lambda: USUAL_SECONDS)
    counts: dict[Path, int] = defaultdict(int)
    for item in items:
        counts[item.path] += 1
        if asks_for_it(item):
            _of_platform.add(item.path)
        if (mark := item.get_closest_marker("timeout")) and mark.args:
            seconds[item.path] = max(seconds[item.path], mark.args[0])

    def place(item: pytest.Item) -> tuple[bool, bool, float, int, str]:
        file = item.path
        if not ROOMS & set(file.parts):
            return False, False, 0.0, 0, ""
        alone = file not in _of_platform
        return True, alone, -seconds[file] if alone else 0.0, -counts[file], str(file)

    items.sort(key=place)
