"""Calls that are made at once."""

from __future__ import annotations

import threading
from typing import Any


def together(asked: list[Any]) -> list[Any]:
    """The results of these calls, each by a thread of its own, begun at once."""
    found: list[Any] = [None] * len(asked)
    begin = threading.Barrier(len(asked))

    def run(number: int) -> None:
        begin.wait()
        found[number] = asked[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(asked))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return found
