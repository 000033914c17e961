"""What was measured of single traces on this machine: of any for the operator, of their own for
tenants.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from monitoring.analysis import steps
from monitoring.analysis.steps import Step, TooMany
from monitoring.analysis.tracing import TracedStep, traced_in
from monitoring.state import measurements
from servioticy.errors import SettingsError
from servioticy.refusals import Refused
from servioticy.settings import Settings
from servioticy.turns import Turns

ID = re.compile(r"[0-9a-f]{32}")
LISTED = 50
"""Traces, the newest first."""
LIST_BYTES = 4 << 20
"""Of the newest measurements: some fifteen thousand, read while somebody waits."""
READ_BYTES = 64 << 20
"""The same, for the steps of one trace; lines are read one by one, and kept where they fit."""
OWN_BYTES = 16 << 20
"""The same, where a tenant asks."""
MOST_FILES = 50
"""Of the processes that have written last."""
MOST_OWN = 200
"""Steps of which a tenant is told."""
TURN_SECONDS = 5.0


class Traces:
    """Reads the files of measurements, for one who asks at a time; tenants by turns."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._turns = Turns(TURN_SECONDS)

    def listed(self, caller: int) -> dict[str, Any]:
        """Return the traces that were measured last. Raises Unavailable."""
        with self._turns.turn(caller):
            read = steps.read_lines(steps.tails(self._files(), LIST_BYTES))
        by_trace: dict[str, list[Step]] = defaultdict(list)
        for each in read.steps:
            if ID.fullmatch(each.sequence):
                by_trace[each.sequence].append(each)
        found = [_summary(trace, some) for trace, some in by_trace.items()]
        found.sort(key=lambda each: (-each["at"], each["trace"]))
        return {"data": found[:LISTED]}

    def told(self, caller: int, trace: str) -> dict[str, Any]:
        """Return all steps of a trace. Raises Refused where they are too many, Unavailable."""
        with self._turns.turn(caller):
            source = partial(steps.tails, self._files(), READ_BYTES)
            try:
                found = traced_in(source, trace)
            except TooMany:
                raise Refused("More steps were measured of this trace than are shown") from None
        return {"trace": trace, "steps": [{**_shown(each), "node": each.node} for each in found]}

    def own(self, caller: int, trace: str) -> list[dict[str, Any]]:
        """Return the steps that are about an update of the caller's, with their programs.

        Of batches that it is in it is not told what else they did, or for how many others: that
        is theirs. None where they are too many. Raises Unavailable.
        """
        files = self._files()
        if not files:
            return []
        with self._turns.turn(caller):
            source = partial(steps.tails, files, OWN_BYTES)
            try:
                found = traced_in(source, trace, with_parts=False)
            except TooMany:
                return []
        return [_own(each) for each in found[:MOST_OWN]]

    def _files(self) -> list[Path]:
        """The files of the processes that have written last."""
        try:
            found = measurements(self._settings.data_path)
        except SettingsError:  # without a data folder nothing is measured
            return []
        return [path for _, path in sorted(_dated(found), reverse=True)[:MOST_FILES]]


def _dated(files: Iterable[Path]) -> Iterator[tuple[float, Path]]:
    for each in files:
        try:
            yield each.stat().st_mtime, each
        except OSError:  # it is full, and has another name by now
            continue


def _summary(trace: str, some: list[Step]) -> dict[str, Any]:
    begun = min(each.start for each in some)
    return {
        "trace": trace,
        "at": begun // 1_000_000,
        "lasted": (max(each.end for each in some) - begun) / 1e6,
        "steps": len(some),
        "first": min(some, key=lambda each: each.start).purpose,
    }


def _shown(step: TracedStep) -> dict[str, Any]:
    """Milliseconds, as elsewhere in this API."""
    shown = {
        "step": step.purpose,
        "after": step.after / 1e6,
        "lasted": step.lasted / 1e6,
        "depth": step.depth,
        "others": step.others,
    }
    return {**shown, "error": step.error} if step.error else shown


def _own(step: TracedStep) -> dict[str, Any]:
    shown = _shown(step)
    del shown["others"]
    _machine, _, process = step.node.partition("/")
    return {**shown, "program": process.partition("/")[0]}
