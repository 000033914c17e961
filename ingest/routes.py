"""Where updates come into the log just now: for what moves to another partition is waited.

Who sends one update after the other finds them computed in that order, over a move too. So
nothing may come to the old partition behind the release: it would be forwarded, behind what has
come to the new one meanwhile. Before anything is released it is said that it leaves, and for as
long as what was routed before may be under way (`LEAVING_SECONDS`) what comes then waits here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

from servioticy.domain.placement import ROUTED_SECONDS, Route, read_route
from servioticy.ports.statements import Statements

MOST_SECONDS = 1.0
"""For a move. Whoever makes it may have died: then what comes goes where it was, and whoever
changes something next finishes it."""
POLL_SECONDS = 0.01


class Routes:
    """Knows the partitions of Service Objects. Threads may share it."""

    def __init__(
        self,
        statements: Statements,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._statements = statements
        self.clock = clock
        self._sleep = sleep

    def is_known(self, asked: float) -> bool:
        """Whether what was asked then, by the clock, may still be gone by."""
        return self.clock() - asked <= ROUTED_SECONDS

    def now(self, service_objects: Collection[str]) -> Mapping[str, Route]:
        """Return where each is routed just now. Raises Unavailable."""
        rows = self._statements.rows("routes", ids=[*service_objects])
        return {id_: read_route(stored) for id_, stored in rows}

    def settled(self, service_objects: Collection[str]) -> Mapping[str, Route]:
        """The same, once none of them is leaving. Raises Unavailable."""
        until = self.clock() + MOST_SECONDS
        while True:
            routes = self.now(service_objects)
            if self.clock() >= until or not any(each.leaves for each in routes.values()):
                return routes
            self._sleep(POLL_SECONDS)
