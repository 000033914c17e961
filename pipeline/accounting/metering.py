"""What streams have used, from where it is counted to their accounts: beside all else.

The processor time of tenants' code the sandbox counts, what is stored and computed
`pipeline/accounting/accounts.py`. Ten thousand composites that have all done something are some
tenths of a second of Postgres: no update waits for that.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from functools import partial
from itertools import islice
from typing import TypeAlias

from pipeline.accounting.accounts import Accounts
from pipeline.accounting.splitting import Wakers, add, split, wakers
from pipeline.immediate_executor import ImmediateExecutor
from pipeline.state.partition import Partition
from servioticy.domain.model import ServiceObject, StreamRef
from servioticy.domain.scripts import stream_of
from servioticy.domain.verdicts import RAN
from servioticy.errors import Unavailable
from servioticy.ports.accounts import UNNAMED, StreamAccounts, Use, UseKey

SECONDS = 10.0

PART = 500
"""Accounts in one transaction; before the next one others have the store to themselves for as long
as it took."""

MAX_WOKEN = 100_000
"""Streams of which is remembered who woke them, of those that others did: as many as the sandbox
remembers the time of."""

END_SECONDS = 0.1
"""So long the end of a task waits for what is on its way to the accounts."""

Known: TypeAlias = Callable[[str], ServiceObject | None]

log = logging.getLogger("servioticy.pipeline")


class Meter:
    """Charges what has been used since it last did: now and then, or when it is quiet.

    `used` gives the seconds that each program, by its id, has used in all. One meter serves
    all partitions that share a sandbox. What a worker has not charged when it is killed is
    lost, and what it does not know to be stored is stored again: this is a measure, not a
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
        self._charged: dict[str, float] = {}
        self._uses: dict[UseKey, Use] = {}
        self._woken: Wakers = {}

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
        store, known = partition.store, partition.known
        self._under_way = self._executor.submit(self._settle, store, known, accounts)

    def keep(self, accounts: Accounts) -> None:
        """Settle, with the next ones, the accounts of a partition that is begun anew."""
        self._kept.add(accounts.take())

    def wait(self) -> None:
        """Wait for what is under way, but not for long."""
        if self._under_way is not None:
            wait([self._under_way], END_SECONDS)

    def _settle(self, store: StreamAccounts, known: Known, accounts: Accounts) -> None:
        """A measure stops nobody's updates, and none that fails stops another."""
        steps = (
            partial(accounts.add_to, self._uses),
            partial(self._add_charges, known),
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

    def _account(self, store: StreamAccounts) -> None:
        """Store what was used; after the first part others have had their turn before."""
        took = 0.0
        for number, keys in enumerate(_parts(sorted(self._uses))):
            if number:
                self._sleep(took)
            began = self._clock()
            some = [self._uses.pop(key) for key in keys]
            try:
                store.account(some)
            except Unavailable:
                self._uses.update(zip(keys, some, strict=True))
                raise
            took = self._clock() - began

    def _add_charges(self, known: Known) -> None:
        """Add the processor time since.

        A Service Object that was deleted, or forgotten, meanwhile is on the accounts if it has
        computed: there it is found whose it is. Those of another partition are left to that.
        """
        used = self._used()
        before = {each: self._charged[each] for each in self._charged if each in used}
        self._charged = before
        tenants = {stream.service_object: tenant for tenant, stream, *_ in self._uses}
        self._note_wakers()
        for program, seconds in used.items():
            # Forgotten in between, it counts from zero again.
            since = before.get(program, 0.0)
            microseconds = round(1e6 * (seconds - since if seconds >= since else seconds))
            if not microseconds:
                continue
            stream = stream_of(program)
            owner = known(stream.service_object)
            tenant = owner.tenant if owner else tenants.get(stream.service_object)
            if tenant is not None:
                self._charge(tenant, stream, microseconds)
                before[program] = seconds

    def _note_wakers(self) -> None:
        """Remember who has woken whose code last: its time may come to the meter later."""
        computed = {key[:2] for key, use in self._uses.items() if use.computations}
        kept = {each: keys for each, keys in self._woken.items() if each not in computed}
        ended = ((key, use.computations) for key, use in self._uses.items())
        self._woken = dict(islice({**wakers(ended, RAN), **kept}.items(), MAX_WOKEN))

    def _charge(self, tenant: int, stream: StreamRef, microseconds: int) -> None:
        woken, left = self._woken.get((tenant, stream), {}), microseconds
        for key, part in split(microseconds, woken, sum(woken.values())):
            add(self._uses, key, microseconds=part)
            left -= part
        if left:
            add(self._uses, (tenant, stream, tenant, UNNAMED), microseconds=left)


def _parts(everything: Sequence[UseKey]) -> Iterator[list[UseKey]]:
    left = iter(everything)
    while some := list(islice(left, PART)):
        yield some
