"""What an attack is: a name, a sentence, what is made ready, and what is then done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.attacks.attacker import Attacker


@dataclass(frozen=True, slots=True)
class Attack:
    """One thing that a tenant could try. `run` returns when its time is over, or before.

    `setup` is measured, too, and what it returns is handed to `run`.
    """

    id: str
    what: str
    setup: Callable[[Attacker], Any]
    run: Callable[[Attacker, Any], None]
    is_control: bool = False
    """It is nobody's attack, and never yields the processor."""


def document(
    streams: dict[str, Any], kind: str = "number", groups: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a document of a device's stream `s` (a channel `v` of this kind) and these."""
    device = {"channels": {"v": {"type": kind}}}
    found: dict[str, Any] = {"version": "0.2.0", "streams": {"s": device, **streams}}
    return found if groups is None else {**found, "groups": groups}


def composite(code: str, kind: str = "number") -> dict[str, Any]:
    """Return a composite stream with one channel `v`."""
    return {"channels": {"v": {"type": kind, "current-value": code}}}
