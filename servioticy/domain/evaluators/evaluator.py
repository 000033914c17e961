"""What the engine asks of whoever computes composites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from sandbox import ProcessorSeconds
from sandbox.trees import Call, Grown


class Lacking(Exception):
    """Entries that composites keep have to be known before calls can be grown: ask again then."""

    def __init__(self, keys: Sequence[tuple[int, bytes]], calls: Sequence[int] = ()) -> None:
        """Of each key the number of its composite, and of the call that lacks it."""
        super().__init__(f"{len(keys)} entries have to be known")
        self.keys = keys
        self.calls = calls or [0] * len(keys)


class Evaluator(Protocol):
    """Grows trees of regions. What a composite's code and state mean is its own affair."""

    def evaluate(
        self, tenant: str, calls: Sequence[Call], within: float | None = None
    ) -> list[Grown]:
        """What came of each call: of all its trees, each as if it were taken after the others.

        Except where one makes more than its bounds allow: then of the trees before it, and
        `failed` is said of it. Raises TookTooLong where all takes more than `within` seconds, and
        Lacking, of all calls together where that is known. Other errors are raised only where
        nobody's code is to blame.
        """

    def is_ready(self, tenant: str) -> bool:
        """Whether a tenant's trees need not wait until a process has started for them."""

    def processor_seconds(self, tenant: str) -> ProcessorSeconds:
        """What a tenant's trees have taken of the processor; none, once that is forgotten."""


Evaluators: TypeAlias = Mapping[str, Evaluator]
"""By the names that composites call them by."""
