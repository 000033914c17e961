"""An evaluator whose other process is a thread of this one: what it computes is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from delivery.evaluating.evaluator import Evaluator

T = TypeVar("T")


class Here:
    """Computes in the thread that asks, and counts how often."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, call: Callable[[], T]) -> T:
        self.asked += 1
        return call()

    def stop(self) -> None:
        pass


def an_evaluator() -> Evaluator:
    """One that starts no process."""
    return Evaluator(Here())
