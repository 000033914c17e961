"""A task on a machine that does not reach the store leaves its partition to another one.

Spark sees that a machine is gone, and not that it is cut off from Postgres alone. A task there
would wait for its claim, and have its slot, for as long as that lasts. One that fails is tried
again, on whichever executor has room, four times; then the query ends, and the driver begins anew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from servioticy.errors import Unavailable

log = logging.getLogger("servioticy.pipeline")

SECONDS = 10.0
PAUSE_SECONDS = 0.5


def reach(
    ask: Callable[[], object],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Ask until there is an answer. Raises Unavailable where there was none for ten seconds."""
    until = clock() + SECONDS
    while True:
        try:
            ask()
            return
        except Unavailable as error:
            if clock() >= until:
                log.warning("store_not_reached", extra={"why": str(error)})
                raise
        sleep(PAUSE_SECONDS)
