"""Computes a backfill step by step: reads history, grows trees, stores rows beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from api.backfills.growing import Growing, NewRow
from api.backfills.plan import ROW_BYTES, Plan
from api.backfills.region import Concerned
from api.backfills.trees import Stored, Tree, merged, trees
from api.stepping.step import Step
from sandbox import InfraError
from sandbox.trees import Bounds
from servioticy.domain.evaluators.evaluator import Evaluator
from servioticy.domain.model import LastUpdate, StreamRef, Timestamp
from servioticy.errors import Unavailable
from servioticy.ports.statements import Statements
from servioticy.refusals import Refused

TREES = 200
TREES_BYTES = 2 * 1024 * 1024
"""That are grown together."""
PAGE_ROWS = 200
PAGES_BYTES = 64 * 1024 * 1024
"""Of the pages of all streams that are read side by side."""


class Ended(Unavailable):
    """The job is gone, or somebody else computes it."""

    def __init__(self) -> None:
        super().__init__("the backfill was cancelled, or has begun anew")


class Filling:
    """Computes in the thread that asks; code runs in the tenant's process."""

    def __init__(self, stored: Statements, evaluator: Evaluator) -> None:
        """`stored` are the statements of backfills."""
        self._sql = stored
        self._evaluator = evaluator

    def steps(self, plan: Plan) -> Iterator[Step]:
        """Yield after some trees each.

        Raises Refused where it would be too much, Ended, Unavailable.
        """
        used = self._used(plan)
        try:
            for _ in self._stored_rows(plan):
                now = self._used(plan)
                yield Step(b"", max(0.0, now - used))
                used = now
        except InfraError as error:
            raise Unavailable(f"the sandbox cannot run the code: {error}") from error

    def _stored_rows(self, plan: Plan) -> Iterator[None]:
        filled = StreamRef(plan.service_object, plan.stream)
        concerned = Concerned(plan.service_objects, filled)
        bounds = Bounds(plan.hops, plan.computations)
        lasts = self._before(plan)
        growing = Growing(concerned, lasts, bounds, self._evaluator, plan.caller)
        size = 0
        for done, some in _together(self._trees(plan, concerned)):
            rows = growing.grow(some)
            size += sum(ROW_BYTES + len(each.document) for each in rows)
            if size > plan.most_bytes:
                raise Refused(
                    f"More than {plan.most_bytes:,} bytes come of it, which is all "
                    "that there is room for"
                )
            self._store(plan, rows, done)
            yield

    def _trees(self, plan: Plan, concerned: Concerned) -> Iterator[Tree]:
        paths = cache(concerned.paths)
        histories = [
            self._history(plan, ref, only_sent=ref in concerned.computed)
            for ref in concerned.streams
            if ref in plan.numbers
        ]
        for some in merged(histories):
            yield from trees(some, paths)

    def _history(self, plan: Plan, ref: StreamRef, *, only_sent: bool) -> Iterator[Stored]:
        """Yield the updates of a stream; of what is computed anew only what was sent into it."""
        after: Timestamp = plan.since
        while True:
            rows = self._sql.rows(
                "page",
                tenant=plan.caller,
                stream=plan.numbers[ref],
                after=after,
                until=plan.until,
                only_sent=only_sent,
                rows=PAGE_ROWS,
                bytes=PAGES_BYTES // len(plan.numbers),
            )
            for timestamp, text, *place in rows:
                yield Stored(timestamp, ref, text.encode(), *place)
            if not rows:
                return
            after = rows[-1][0] + 1

    def _before(self, plan: Plan) -> dict[StreamRef, LastUpdate]:
        found = {}
        for ref, number in plan.numbers.items():
            values = {"tenant": plan.caller, "stream": number, "since": plan.since}
            row = self._sql.row("before", **values)
            if row is not None:
                found[ref] = LastUpdate(row[0], row[1].encode())
        return found

    def _store(self, plan: Plan, rows: Sequence[NewRow], done: int) -> None:
        kept = self._sql.rows(
            "store",
            job=plan.job,
            tenant=plan.caller,
            attempt=plan.attempt,
            done=done,
            streams=[plan.numbers[each.stream] for each in rows],
            timestamps=[each.timestamp for each in rows],
            versions=[each.version for each in rows],
            partitions=[each.log_partition for each in rows],
            offsets=[each.log_offset for each in rows],
            positions=[each.log_position for each in rows],
            documents=[each.document.decode() for each in rows],
        )
        if not kept:
            raise Ended

    def _used(self, plan: Plan) -> float:
        """Seconds of the processor that the tenant's code has taken in all."""
        return self._evaluator.processor_seconds(str(plan.caller)).total


def _together(every: Iterator[Tree]) -> Iterator[tuple[int, list[Tree]]]:
    """Yield trees that are grown together, and how many updates were read with them in all."""
    some: list[Tree] = []
    done = size = 0
    for tree in every:
        some.append(tree)
        done += len(tree)
        size += sum(len(each.update.document) for each in tree)
        if len(some) == TREES or size >= TREES_BYTES:
            yield done, some
            some, size = [], 0
    yield done, some
