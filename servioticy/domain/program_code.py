"""Which program of a tenant's own computes a composite stream."""

from __future__ import annotations

from dataclasses import dataclass

PROGRAMS = "programs"
"""The evaluator of composites that such programs compute."""

OPERATOR = "operator"
"""The key of a stream under which its document names one, and what messages call it."""


@dataclass(frozen=True, slots=True)
class ProgramCode:
    """What a composite that a program computes runs."""

    name: str
    """As the document has it: of another tenant's `OWNER/NAME`."""
    version: int

    @property
    def owner(self) -> str:
        """The other tenant's name; "": it is of its own tenant."""
        return self.name.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class SideCode:
    """What a composite runs whose updates the program of another stream makes, beside its own."""

    of: str
    """That stream, of the same document."""
    name: str
    """Its own."""
