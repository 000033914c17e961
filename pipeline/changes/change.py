"""What a control record changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from servioticy.ports.batches import StoredVerdict
from servioticy.ports.borders import Crossing, OutsideReader
from servioticy.ports.effects import Effect


class Change(NamedTuple):
    """What a control record changes."""

    effect: Effect | None
    """In the store, with the progress past the record."""
    forget: Callable[[], None]
    """Makes the partition forget what is not so any more; it is loaded when needed."""
    verdicts: Sequence[StoredVerdict] = ()
    """Of composites that may read less from here on."""
    crossings: Sequence[Crossing] = ()
    """What it tells those who read from outside."""
    outside: Sequence[OutsideReader] = ()
    """Those that may read from here on, or may not any more."""
