"""Backfills in a process of lower priority, which has a sandbox of its own."""

from __future__ import annotations

from api.backfills.plan import Plan
from api.stepping.apart import StepsApart
from servioticy.apart import asking
from servioticy.settings import Settings, to_environment

STEP_SECONDS = 120.0
"""For one step: some trees, of which code may run for seconds each."""
MOST_BEGUN, MOST_OF_ONE = 4, 1
"""Backfills that are computed by turns; of one tenant."""
COMMAND = asking.command("api.backfills.process")


class BackfillsApart(StepsApart[Plan]):
    """Backfills that another process computes."""

    def __init__(self, process: asking.OtherProcess) -> None:
        super().__init__(process, "backfills", MOST_BEGUN, MOST_OF_ONE)


def filling_process(settings: Settings) -> asking.OtherProcess:
    """Return the process that fills where the settings say, which is not started yet."""
    environment = to_environment(settings)
    return asking.OtherProcess(COMMAND, STEP_SECONDS, "the process that fills", environment)
