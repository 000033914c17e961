"""Cutting a fold into shorter ones that give the same: what a retry and a long call need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sandbox.program import Assignment, Call, Fault, Outcome, Step, Value

MAX_STEPS = 1000  # in one frame
MAX_BYTES = 1024 * 1024  # in one frame


@dataclass(frozen=True, slots=True)
class LastOutput:
    """A stream's last output, as the runner has it at some step; None before the first one."""

    document: bytes | None
    timestamp: int | None

    def after(self, step: Step, outcome: Outcome, updates: Sequence[bytes]) -> LastOutput:
        """Return the last output after `step` has ended with `outcome`."""
        if isinstance(step, Assignment):
            if self.timestamp is None or step.timestamp >= self.timestamp:
                return LastOutput(updates[step.update], step.timestamp)
            return self
        if isinstance(outcome, Value):
            return LastOutput(outcome.document, outcome.timestamp)
        return self


def part(call: Call, start: int, stop: int, last: LastOutput) -> Call:
    """Make a call of the steps from `start` to `stop`, with only the updates they use."""
    steps = call.steps[start:stop]
    used: dict[int, int] = {}
    for step in steps:
        for index in (step.update,) if isinstance(step, Assignment) else step.inputs:
            if index >= 0:
                used.setdefault(index, len(used))
    return replace(
        call,
        previous=last.document,
        previous_timestamp=last.timestamp,
        updates=tuple(call.updates[index] for index in used),
        steps=tuple(_renumbered(step, used) for step in steps),
    )


def runs(step: Step, last: int | None) -> bool:
    """Tell whether code runs for a step when the last output is of the timestamp `last`."""
    return not isinstance(step, Assignment) and (last is None or step.timestamp > last)


def refused(call: Call, fault: Fault | None) -> list[Outcome]:
    """Return the outcomes of a call whose program does not run, in the runner's order."""
    outcomes: list[Outcome] = []
    last = LastOutput(call.previous, call.previous_timestamp)
    for step in call.steps:
        if isinstance(step, Assignment):
            outcomes.append(None)
        elif last.timestamp is not None and step.timestamp <= last.timestamp:
            text = f"trigger {step.timestamp} is not newer than output {last.timestamp}"
            outcomes.append(Fault("stale", text))
        else:
            outcomes.append(fault)
        last = last.after(step, outcomes[-1], call.updates)
    return outcomes


def size(call: Call) -> int:
    """Return about how many bytes a call takes in a frame."""
    step = 64 + 8 * len(call.program.arguments)
    return sum(map(len, call.updates)) + len(call.previous or b"") + step * len(call.steps)


def groups(calls: Sequence[Call]) -> Iterator[list[Call]]:
    """Yield the calls in order, in groups that fit a frame; a call too long for one is alone."""
    group: list[Call] = []
    steps = content = 0
    for call in calls:
        steps += len(call.steps)
        content += size(call)
        if group and (steps > MAX_STEPS or content > MAX_BYTES):
            yield group
            group = []
            steps, content = len(call.steps), size(call)
        group.append(call)
    if group:
        yield group


def _renumbered(step: Step, used: dict[int, int]) -> Step:
    if isinstance(step, Assignment):
        return step._replace(update=used[step.update])
    return step._replace(inputs=tuple(used.get(index, -1) for index in step.inputs))
