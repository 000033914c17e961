"""Searches in a process of lower priority: their computing holds up no update of this one.

The process is asked for one step after the other, of whichever search has its turn; it keeps what
is begun, until it is told that nobody wants it any more. It is ended where a step takes too long
or too much memory: then the searches that are begun break off, and others begin in another one.
"""

from __future__ import annotations

import itertools
import pickle
import threading
from collections import Counter, deque
from collections.abc import Iterator

from api.search.searching import Search, Step
from servioticy.apart import asking
from servioticy.errors import Unavailable
from servioticy.refusals import TooMany
from servioticy.settings import Settings, to_environment

STEP_SECONDS = 30.0
"""For one step, which takes some hundredths of a second and a few statements of Postgres."""
MOST_BEGUN, MOST_OF_ONE = 256, 64
"""Searches that are not at their end; of one tenant. Each may keep a megabyte."""
COMMAND = asking.command("api.search.process")
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Of numpy's: more would take the processor from everybody, and memory."""


class SearchesApart:
    """Asked by one thread at a time for a step; searches may be begun and ended by any."""

    def __init__(self, process: asking.OtherProcess) -> None:
        self._process = process
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._begun: Counter[int] = Counter()
        """how many searches of each tenant are not at their end"""
        self._ended: deque[int] = deque()
        """numbers that the process is still to be told of"""

    def steps(self, search: Search) -> Iterator[Step]:
        """Yield what the process finds. Raises Unavailable, and TooMany of a tenant's own."""
        number, tenant = next(self._numbers), search.caller
        self._begin(tenant)
        try:
            step = self._asked(number, search)
            while step is not None:
                yield step
                step = self._asked(number, None)
        finally:
            self._end(tenant, number)

    def close(self) -> None:
        """End the process."""
        self._process.stop()

    def _begin(self, tenant: int) -> None:
        with self._lock:
            if self._begun[tenant] >= MOST_OF_ONE:
                raise TooMany(f"{MOST_OF_ONE} searches are under way already: read their answers")
            if self._begun.total() >= MOST_BEGUN:
                raise Unavailable("too many searches are under way; try again later")
            self._begun[tenant] += 1

    def _end(self, tenant: int, number: int) -> None:
        with self._lock:
            self._ended.append(number)
            self._begun[tenant] -= 1
            if not self._begun[tenant]:
                del self._begun[tenant]

    def _asked(self, number: int, search: Search | None) -> Step | None:
        with self._lock:
            ended = list(self._ended)
            self._ended.clear()
        request = pickle.dumps((ended, number, search), pickle.HIGHEST_PROTOCOL)
        found = pickle.loads(self._process.ask(request))  # noqa: S301  our own code made it
        if isinstance(found, Step):
            return found
        if found is not None:
            raise found
        return None


def searching_process(settings: Settings) -> asking.OtherProcess:
    """Return the process that searches where the settings say, which is not started yet."""
    environment = {**to_environment(settings), **ONE_THREAD}
    return asking.OtherProcess(COMMAND, STEP_SECONDS, "the process that searches", environment)
