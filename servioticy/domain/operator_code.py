"""What an evaluator runs that takes one computation at a time, in place of a program."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from hashlib import sha256

from servioticy.domain.model import Channel, Composite


@dataclass(frozen=True, slots=True)
class OperatorCode:
    """The code of a composite that an operator computes. Equal ids mean equal code."""

    operator: Hashable
    """As of the composite."""
    arguments: tuple[str, ...]
    """The names of its inputs, in order."""
    channels: tuple[Channel, ...]
    id: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Make the id."""
        content = repr((self.operator, self.arguments, self.channels))
        object.__setattr__(
            self, "id", sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        )


def code_of(composite: Composite) -> OperatorCode:
    """The code of a composite that has an operator."""
    arguments = tuple([each.name for each in composite.inputs])
    return OperatorCode(composite.operator, arguments, composite.channels)
