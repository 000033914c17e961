"""Works off backfills, each a step at a time, until all are computed and take their place.

What is computed begins anew after a death, and whoever computes an earlier attempt stores nothing
any more. So it is there wholly, once, where the log says so, or not at all.
"""

from __future__ import annotations

import itertools
import logging
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from api.backfills.apart import MOST_BEGUN
from api.backfills.plan import MOST_SECONDS, Backfills
from api.backfills.planning import Planning, Wanted
from api.backfills.region import Concerned
from api.services import Services
from api.stepping.step import Step
from servioticy.domain.model import ServiceObjectKey
from servioticy.domain.quotas import PROCESSOR_SECONDS
from servioticy.errors import Unavailable
from servioticy.refusals import Refused

ATTEMPTS = 10
"""Of a job whose process ends again and again."""
MAX_REMEMBERED = 10_000
"""Tenants of which it is known when they last had their turn."""
ACCOUNTED_SECONDS = 1.0
"""Of the processor: so much at a time comes to the accounts."""

log = logging.getLogger("api.backfills")


@dataclass(slots=True)
class UnderWay:
    """A backfill that is being computed."""

    wanted: Wanted
    concerned: Concerned
    steps: Iterator[Step]
    seconds: float = 0.0
    to_account: float = 0.0


class BackfillJobs:
    """Has backfills computed, tenants by turns. For one thread."""

    def __init__(self, services: Services, backfills: Backfills) -> None:
        self._services = services
        self._backfills = backfills
        self._planning = Planning(services)
        self._sql = services.ports.statements("backfills")
        self._under_way: dict[str, UnderWay] = {}
        self._numbers = itertools.count(1)
        self._begun: OrderedDict[int, int] = OrderedDict()
        """of each tenant the number of its last beginning, the longest ago first"""

    def turn(self) -> bool:
        """Go on until there is nothing to compute: nobody else does meanwhile.

        False: there was nothing. Raises Unavailable: then all begins anew, here or elsewhere.
        """
        found = False
        try:
            while self._round():
                found = True
        finally:
            self._under_way.clear()
        return found

    def _round(self) -> bool:
        self._begin_others()
        for job, each in list(self._under_way.items()):
            self._step(job, each)
        return bool(self._under_way)

    def _begin_others(self) -> None:
        rows = self._sql.rows("unfinished")
        rows = sorted(rows, key=lambda row: self._begun.get(row[1], 0))
        jobs = {row[0]: row for row in rows if row[2] != "swapping"}
        for job in self._under_way.keys() - jobs.keys():
            del self._under_way[job]  # cancelled
        for job, tenant, _state, service_object, stream, since, until, attempt in jobs.values():
            if job in self._under_way or len(self._under_way) >= MOST_BEGUN:
                continue
            if self._services.quotas.metered(tenant, PROCESSOR_SECONDS) is not None:
                continue  # goes on when the hour is over
            wanted = Wanted(tenant, service_object, stream, since, until)
            try:
                if attempt >= ATTEMPTS:
                    raise Refused(f"It was begun {ATTEMPTS} times, and never came to its end")
                concerned, plan = self._planning.plan(wanted, job)
            except Refused as error:
                self._fail(job, tenant, str(error))
                continue
            except Unavailable:
                continue  # what it waits for is done soon
            if plan is not None:
                steps = self._backfills.steps(plan)
                self._under_way[job] = UnderWay(wanted, concerned, steps)
                self._note_begun(tenant)

    def _note_begun(self, tenant: int) -> None:
        """Others come before it next time, whenever they have asked."""
        self._begun[tenant] = next(self._numbers)
        self._begun.move_to_end(tenant)
        if len(self._begun) > MAX_REMEMBERED:
            self._begun.popitem(last=False)

    def _step(self, job: str, each: UnderWay) -> None:
        wanted = each.wanted
        try:
            self._planning.outside(wanted.tenant, each.concerned)  # which may end meanwhile
            step = next(each.steps, None)
            if step is None:
                self._planning.outside(wanted.tenant, each.concerned)
        except Refused as error:
            del self._under_way[job]
            self._fail(job, wanted.tenant, str(error))
            return
        except Unavailable:
            del self._under_way[job]
            if any(row[0] == job for row in self._sql.rows("unfinished")):
                raise
            return  # it was cancelled
        if step is not None:
            each.seconds += step.seconds
            each.to_account += step.seconds
        if step is None or each.to_account >= ACCOUNTED_SECONDS:
            self._account(each)
        if step is None:
            del self._under_way[job]
            key = ServiceObjectKey(wanted.tenant, wanted.service_object)
            self._services.ports.changes.fill_in(key, job)
        elif each.seconds > MOST_SECONDS:
            del self._under_way[job]
            most = f"It takes more than {MOST_SECONDS:,.0f} s of the processor"
            self._fail(job, wanted.tenant, f"{most}: fill a shorter span")

    def _account(self, each: UnderWay) -> None:
        self._sql.rows(
            "account",
            tenant=each.wanted.tenant,
            service_object=each.wanted.service_object,
            stream=each.wanted.stream,
            processor_us=round(each.to_account * 1e6),
        )
        each.to_account = 0.0

    def _fail(self, job: str, tenant: int, why: str) -> None:
        log.info("backfill_failed", extra={"job": job, "reason": why})
        failures = orjson.dumps([{"message": why}]).decode()
        now = self._services.now()
        self._sql.rows("fail", job=job, tenant=tenant, failures=failures, now=now)
