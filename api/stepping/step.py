"""What is asked, and the steps in which it is answered, wherever they are computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeVar


class Step(NamedTuple):
    """What a step has found, and what it took of the processor elsewhere."""

    documents: bytes
    """joined by commas; empty: none"""
    seconds: float = 0.0


class Asked(Protocol):
    """Says what is wanted, and which tenant asks."""

    @property
    def caller(self) -> int:
        """The tenant."""


A = TypeVar("A", bound=Asked)
A_contra = TypeVar("A_contra", bound=Asked, contravariant=True)


class Steps(Protocol[A_contra]):
    """Where work is done; those who ask take turns, one step at a time."""

    def steps(self, asked: A_contra, /) -> Iterator[Step]:
        """Begin it, and yield it step by step.

        Raises Unavailable: also in the middle, where what computes it has ended.
        """
