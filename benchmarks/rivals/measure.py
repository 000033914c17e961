"""Runs a rival, in a process of its own, on the work that a benchmark has for it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from servioticy.errors import SetupError

SECONDS = 240.0
NOTHING: Mapping[str, str] = MappingProxyType({})
RIVALS = {
    "Bytewax 0.21.1": "on_bytewax.py",
    "Quix Streams 3.28.0": "on_quix.py",
}
"""Each with the program that has it do the work."""


class Found(NamedTuple):
    """What it took."""

    speed: float
    """Updates a second, from the first one to the last result."""
    processor: float
    """Microseconds of the processor for each update, of its own process alone."""
    results: int
    memory: int
    """Bytes that its process has taken more, at most."""


def measured(python: Path, program: str, work: Mapping[str, Any]) -> Found:
    """Return what a rival took for windows. Raises SetupError where it fails.

    `work` has `updates`, of so many `keys` by turns, `size` and `every` of the window in seconds,
    and the `broker`.
    """
    told = done(python, program, work)
    updates = int(work["updates"])
    return Found(
        updates / told["seconds"],
        1e6 * told["processor"] / updates,
        int(told["results"]),
        1024 * int(told["kib"]),
    )


def done(
    python: Path, program: str, work: Mapping[str, Any], environment: Mapping[str, str] = NOTHING
) -> Mapping[str, Any]:
    """Return what a rival's program prints when its work is done. Raises SetupError."""
    path = Path(str(resources.files("benchmarks.rivals"))) / program
    try:
        ended = subprocess.run(
            [str(python), "-I", str(path), json.dumps(work)],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SetupError(f"{program} did not end within {SECONDS:g} s") from None
    if ended.returncode:
        raise SetupError(f"{program} has failed: {ended.stderr.strip()[-500:]}")
    told: Mapping[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return told
