"""Which machines have a slow cable now: a file, and a program for each."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from servioticy.embedded.folder import write_private
from servioticy.supervisor.program import Program

MOST_MILLISECONDS = 10_000


def read(folder: Path) -> dict[str, int]:
    """Return by machine how many milliseconds; those that are not slow are not there."""
    try:
        found: dict[str, int] = json.loads(_file(folder).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return found


def write(folder: Path, slow: Mapping[str, int]) -> None:
    """Let these be slow from now on, and no others. It takes a second."""
    partial = folder / "slow.json.new"
    write_private(partial, json.dumps({name: each for name, each in slow.items() if each}))
    partial.replace(_file(folder))


def programs(folder: Path, networks: Path) -> list[Program]:
    """Return those that make them slow."""
    before = [sys.executable, "-P", "-m", "command.cluster.slowness", str(networks)]
    return [
        Program(f"slow-{name}", [*before, name, str(each)], {})
        for name, each in read(folder).items()
    ]


def _file(folder: Path) -> Path:
    return folder / "slow.json"
