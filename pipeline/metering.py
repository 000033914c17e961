"""What streams have used, from where it is counted to their accounts: beside all else.

The processor time of tenants' code the sandbox counts, what is stored and computed
`pipeline/accounts.py`. Ten thousand composites that have all done something are some tenths of
a second of Postgres: no update waits for that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from functools import partial
from itertools import islice
from typing import TypeAlias, TypeVar

from pipeline.accounts import Accounts
from pipeline.immediate_executor import ImmediateExecutor
from pipeline.state.partition import Partition
from servioticy.domain.model import ServiceObject, StreamRef
from servioticy.domain.scripts import stream_of
from servioticy.errors import Unavailable
from servioticy.ports.partition_store import Charge, PartitionStore, Use, UseKey

SECONDS = 10.0

PART = 500
"""Accounts in one transaction; before the next one others have the store to themselves for as long
as it took."""

END_SECONDS = 0.1
"""So long the end of a task waits for what is on its way to the accounts."""

FindRow: TypeAlias = Callable[[StreamRef], tuple[ServiceObject, int] | None]
T = TypeVar("T")

log = logging.getLogger("servioticy.pipeline")


class Meter:
    """Charges what has been used since it last did: now and then, or when it is quiet.

    `used` gives the seconds that each program, by its id, has used in all. One meter serves
    all partitions that share a sandbox. What a worker has not charged when it is killed is
    lost, and what it does not know to be charged is charged again: this is a measure, not a
    promise.
    """

    def __init__(
        self,
        used: Callable[[], Mapping[str, float]],
        clock: Callable[[], float] = time.monotonic,
        executor: Executor | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """The `executor`, of one thread, charges beside all else; without it in turn."""
        self._used = used
        self._clock = clock
        self._executor = executor or ImmediateExecutor()
        self._sleep = sleep
        self._at = clock()
        self._under_way: Future[None] | None = None
        self._kept = Accounts()
        # Of the executor's thread:
        self._took = 0.0
        self._charged: dict[str, float] = {}
        self._uses: dict[UseKey, Use] = {}

    @property
    def due(self) -> bool:
        """Whether it is time, however busy it is."""
        return self._clock() - self._at >= SECONDS

    def charge(self, partition: Partition) -> None:
        """Begin to charge the streams of this partition and to settle its accounts.

        Where that cannot be stored, or an earlier one is under way, it is charged next time.
        """
        if self._under_way is not None and not self._under_way.done():
            return
        self._at = self._clock()
        accounts = partition.accounts.take()
        accounts.add(self._kept.take())
        store, find_row = partition.store, partition.find_row
        self._under_way = self._executor.submit(self._settle, store, find_row, accounts)

    def keep(self, accounts: Accounts) -> None:
        """Settle, with the next ones, the accounts of a partition that is begun anew."""
        self._kept.add(accounts.take())

    def wait(self) -> None:
        """Wait for what is under way, but not for long."""
        if self._under_way is not None:
            wait([self._under_way], END_SECONDS)

    def _settle(self, store: PartitionStore, find_row: FindRow, accounts: Accounts) -> None:
        """A measure stops nobody's updates, and none that fails stops another."""
        steps = (
            partial(accounts.add_to, self._uses),
            partial(self._charge, store, find_row),
            partial(self._account, store),
        )
        for step in steps:
            try:
                step()
            except Unavailable as error:
                log.warning("accounts_wait", extra={"why": str(error)})
                return
            except Exception:
                log.exception("accounts_lost")

    def _account(self, store: PartitionStore) -> None:
        for number, keys in enumerate(_parts(sorted(self._uses))):
            some = [self._uses.pop(key) for key in keys]
            try:
                self._in_turn(number, store.account, some)
            except Unavailable:
                self._uses.update(zip(keys, some, strict=True))
                raise

    def _charge(self, store: PartitionStore, find_row: FindRow) -> None:
        used = self._used()
        before = {each: self._charged[each] for each in self._charged if each in used}
        self._charged = before
        programs: dict[int, list[str]] = {}
        charges: dict[int, Charge] = {}
        for program, seconds in used.items():
            # Forgotten in between, it counts from zero again.
            since = before.get(program, 0.0)
            microseconds = round(1e6 * (seconds - since if seconds >= since else seconds))
            row = find_row(stream_of(program)) if microseconds else None
            if row is not None:
                owner, stream_id = row
                earlier = charges.get(stream_id)
                microseconds += earlier.microseconds if earlier else 0
                charges[stream_id] = Charge(owner.tenant, stream_id, microseconds)
                programs.setdefault(stream_id, []).append(program)
        for number, streams in enumerate(_parts(sorted(charges))):
            self._in_turn(number, store.charge, [charges[each] for each in streams])
            for each in (program for stream in streams for program in programs[stream]):
                self._charged[each] = used[each]

    def _in_turn(self, number: int, act: Callable[[list[T]], None], some: list[T]) -> None:
        """Store a part; after the first one others have had their turn before."""
        if number:
            self._sleep(self._took)
        began = self._clock()
        act(some)
        self._took = self._clock() - began


def _parts(everything: Sequence[T]) -> Iterator[list[T]]:
    left = iter(everything)
    while some := list(islice(left, PART)):
        yield some
