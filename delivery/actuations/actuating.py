"""All that has to do with actuations, wired: who has something to get, whom to call, who asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from delivery.actuations.acting_streams import ActingStreams
from delivery.actuations.condition_checker import ConditionChecker
from delivery.actuations.couriers import Couriers
from delivery.actuations.queues import Queues
from delivery.admission.fair_executor import FairExecutor
from delivery.admission.spending import Spending
from delivery.callbacks.receiver import Callbacks
from delivery.evaluating.evaluator import Evaluator
from sandbox import SandboxPool
from servioticy.ports.actuations import Actuations
from servioticy.ports.cursors import Claim
from servioticy.ports.service_objects import ServiceObjects

THREADS = 2


class Actuating:
    """Begins and ends together."""

    def __init__(
        self,
        store: Actuations,
        documents: ServiceObjects,
        sandbox: Callable[[], SandboxPool],
        spending: Spending,
        callbacks: Callbacks,
        evaluator: Evaluator,
        claim: Callable[[], Claim],
    ) -> None:
        """`sandbox` gives the processes for the conditions of tenants, when one is asked for;
        `spending` hears what they take, `claim` tells of which tenants this process calls.
        """
        calls = FairExecutor("actuations", THREADS)
        self._couriers = Couriers(store, callbacks, calls.run, claim, time.time)
        self.queues = Queues(store, None, calls.run, self._couriers.wake)
        self._conditions = ConditionChecker(sandbox, spending)
        ask = FairExecutor("conditions", 1).run
        self.acting = ActingStreams(
            store,
            documents,
            self._conditions,
            spending,
            evaluator,
            calls.run,
            ask,
            time.time,
        )

    def start(self) -> None:
        """Look for what waits from now on."""
        self.queues.start()
        self._couriers.start()

    async def stop(self) -> None:
        """Send no more; what was on its way comes again."""
        await self.queues.stop()
        await self._couriers.stop()
        await asyncio.to_thread(self._conditions.stop)
