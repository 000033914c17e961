"""Processor time of tenants' code: from what the sandbox counts to the streams' accounts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from pipeline.state.partition import Partition
from servioticy.domain.scripts import stream_of
from servioticy.errors import Unavailable
from servioticy.ports.partition_store import Charge

SECONDS = 10.0

log = logging.getLogger("servioticy.pipeline")


class Meter:
    """Charges what has been used since it last did: now and then, or when it is quiet.

    `used` gives the seconds that each program, by its id, has used in all. One meter serves
    all partitions that share a sandbox. What a worker has not charged when it is killed is
    lost: this is a measure, not a promise.
    """

    def __init__(
        self, used: Callable[[], Mapping[str, float]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._used = used
        self._clock = clock
        self._charged: dict[str, float] = {}
        self._at = clock()

    @property
    def due(self) -> bool:
        """Whether it is time, however busy it is."""
        return self._clock() - self._at >= SECONDS

    def charge(self, partition: Partition) -> None:
        """Charge the streams of this partition, and settle its accounts, or do that next time.

        Raises Unavailable, having charged nothing that it will not charge again.
        """
        self._at = self._clock()
        used = self._used()
        charged = {each: self._charged[each] for each in self._charged if each in used}
        charges: dict[int, Charge] = {}
        for program, seconds in used.items():
            before = self._charged.get(program, 0.0)
            # Forgotten in between, it counts from zero again.
            microseconds = round(1e6 * (seconds - before if seconds >= before else seconds))
            row = partition.find_row(stream_of(program)) if microseconds else None
            if row is not None:
                owner, stream_id = row
                earlier = charges.get(stream_id)
                microseconds += earlier.microseconds if earlier else 0
                charges[stream_id] = Charge(owner.tenant, stream_id, microseconds)
                charged[program] = seconds
        if charges:
            partition.store.charge(sorted(charges.values(), key=lambda each: each.stream_id))
        self._charged = charged
        try:
            partition.accounts.settle(partition.store)
        except Unavailable as error:
            log.warning("accounts_wait", extra={"why": str(error)})
        except Exception:  # a measure stops nobody's updates
            log.exception("accounts_lost")
            partition.accounts.forget()
