"""Which monitors are to run on this machine by now."""

from __future__ import annotations

import sys
from pathlib import Path

from monitoring.applications import repository, states
from monitoring.applications.repository import Place


def commands(data: Path) -> dict[str, list[str]]:
    """Return the command of each, by the name that its program has."""
    return {
        f"application-{each.name}": command(each.name, each.turn)
        for each in repository.all_registered(data)
        if each.wish == "running"
        and not states.is_over(each, states.written(Place(data, each.name)))
    }


def command(name: str, turn: int) -> list[str]:
    """Return the command of an application's monitor, for one turn."""
    return [sys.executable, "-P", "-m", "monitoring.applications.watching", name, str(turn)]
