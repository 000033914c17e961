"""Trials in a process of lower priority, which has a sandbox of its own."""

from __future__ import annotations

from api.stepping.apart import StepsApart
from api.trials.trial import Trial
from servioticy.apart import asking
from servioticy.settings import Settings, to_environment

STEP_SECONDS = 30.0
"""For one step: reading what is stored, or an update in both versions."""
MOST_BEGUN, MOST_OF_ONE = 32, 2
"""Trials that are not at their end; of one tenant. Each may keep twenty megabytes."""
COMMAND = asking.command("api.trials.process")


class TrialsApart(StepsApart[Trial]):
    """Trials that another process computes."""

    def __init__(self, process: asking.OtherProcess) -> None:
        super().__init__(process, "trials", MOST_BEGUN, MOST_OF_ONE)


def trying_process(settings: Settings) -> asking.OtherProcess:
    """Return the process that tries where the settings say, which is not started yet."""
    environment = to_environment(settings)
    return asking.OtherProcess(COMMAND, STEP_SECONDS, "the process that tries", environment)
