"""Searches in a process of lower priority: their computing holds up no update of this one."""

from __future__ import annotations

from api.search.searching import Search
from api.stepping.apart import StepsApart
from servioticy.apart import asking
from servioticy.settings import Settings, to_environment

STEP_SECONDS = 30.0
"""For one step, which takes some hundredths of a second and a few statements of Postgres."""
MOST_BEGUN, MOST_OF_ONE = 256, 64
"""Searches that are not at their end; of one tenant. Each may keep a megabyte."""
COMMAND = asking.command("api.search.process")
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Of numpy's: more would take the processor from everybody, and memory."""


class SearchesApart(StepsApart[Search]):
    """Searches that another process computes."""

    def __init__(self, process: asking.OtherProcess) -> None:
        super().__init__(process, "searches", MOST_BEGUN, MOST_OF_ONE)


def searching_process(settings: Settings) -> asking.OtherProcess:
    """Return the process that searches where the settings say, which is not started yet."""
    environment = {**to_environment(settings), **ONE_THREAD}
    return asking.OtherProcess(COMMAND, STEP_SECONDS, "the process that searches", environment)
