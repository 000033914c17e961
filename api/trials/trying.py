"""Plays stored updates through both versions, one after the other, and tells what came of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import orjson

from api.replaying.replay import Means
from api.stepping.step import Step
from api.trials.comparing import Comparison
from api.trials.playing import Playing
from api.trials.stored import Stored
from api.trials.trial import SECONDS, Found, Trial, Update
from api.trials.version import Version
from api.trials.watched import Enough
from sandbox import InfraError, ProcessorSeconds
from sandbox.trees import Call, Grown
from servioticy.domain.evaluators.evaluator import Evaluator
from servioticy.domain.evaluators.every import operators
from servioticy.errors import Unavailable

STARTING_SECONDS = 3.0
"""More, where a process for the tenant's code is to be started first."""


class TrialsHere:
    """Computes them in the thread that asks; code runs in the tenant's process."""

    def __init__(self, stored: Stored, evaluator: Evaluator) -> None:
        self._stored = stored
        self._evaluator = evaluator
        self._operators = operators()

    def steps(self, trial: Trial) -> Iterator[Step]:
        """Yield after each update, and at last the whole answer, a JSON object.

        Raises Refused where it would be too much, Unavailable.
        """
        versions = [Version(each, trial.service_object) for each in (trial.before, trial.after)]
        found = yield from self._stored.found(trial, versions)
        yield Step(b"")
        comparison = Comparison()
        means = Means(str(trial.caller), self._evaluator, self._operators)
        behind = versions[0].behind_windows | versions[1].behind_windows
        both = [Playing(each, trial, found, means, behind) for each in versions]
        left, why = SECONDS, ""
        if not self._evaluator.is_ready(str(trial.caller)):
            left += STARTING_SECONDS
        for update in [*found.updates, None]:
            began, before = time.monotonic(), self._used(trial)
            try:
                _play(update, both, began + left, comparison)
            except Enough as error:
                why = str(error)
                break
            except InfraError as error:
                yield Step(b"", max(0.0, self._used(trial) - before))
                raise Unavailable(f"the sandbox cannot run the code: {error}") from error
            finally:
                left -= time.monotonic() - began
            yield Step(b"", self._used(trial) - before)
        told = comparison.told() | _beside(found, len(comparison), why)
        if any(each.windows for each in versions):
            told["windows"] = comparison.told_of_windows() | _of_windows(both)
        yield Step(orjson.dumps(told), max(0.0, self._used(trial) - before) if why else 0.0)

    def _used(self, trial: Trial) -> float:
        """Seconds of the processor that the tenant's code has taken in all."""
        return self._evaluator.processor_seconds(str(trial.caller)).total


def _play(
    update: Update | None, both: Sequence[Playing], until: float, comparison: Comparison
) -> None:
    """Play an update through both versions; with None the time behind the last one passes."""
    if update is None:
        comparison.passed([each.finish(until) for each in both])
    else:
        comparison.add(update, [each.play(update, until) for each in both])


def _of_windows(both: Sequence[Playing]) -> dict[str, object]:
    """Return what is told of windows that may not be whole."""
    before, after = (len(each.whole.left_out) for each in both)
    notes = dict.fromkeys(note for each in both for note in each.whole.notes())
    return {"leftOut": {"before": before, "after": after}, "notes": list(notes)}


def _beside(found: Found, played: int, why: str) -> dict[str, object]:
    """Return what is told where not all was played, and of what was not read."""
    told: dict[str, object] = {}
    if why:
        wanted = sum(each.played for each in found.updates)
        told["truncated"] = f"after {played} of {wanted} updates: {why}"
    elif not found.complete:
        told["truncated"] = "what it reads is too large: not all of it was looked at"
    if found.unread:
        told["notRead"] = [str(each) for each in found.unread]
    return told


class NoSandbox:
    """An evaluator that runs no code: of what does not change trials can be made all the same."""

    def evaluate(
        self, _tenant: str, _calls: Sequence[Call], _within: float | None = None
    ) -> list[Grown]:
        """Raise InfraError."""
        raise InfraError("there is none here")

    def is_ready(self, _tenant: str) -> bool:
        """Tell that nothing is waited for."""
        return True

    def processor_seconds(self, _tenant: str) -> ProcessorSeconds:
        """Return none."""
        return ProcessorSeconds()
