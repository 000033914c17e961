"""Computes a backfill step by step: reads history, grows trees, stores rows beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

from api.backfills.growing import Growing, NewRow
from api.backfills.plan import ROW_BYTES, Plan
from api.backfills.region import Concerned
from api.backfills.trees import Stored, Tree, merged, trees
from api.replaying.replay import Means
from api.stepping.step import Step
from sandbox import InfraError
from sandbox.trees import Bounds
from servioticy.domain.evaluators.evaluator import Evaluator
from servioticy.domain.evaluators.every import operators
from servioticy.domain.model import StreamRef, Timestamp
from servioticy.errors import Unavailable
from servioticy.ports.statements import Row, Statements
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
    """Computes in the thread that asks; code runs in the tenant's process.

    What is computed is stored in another thread while what follows is computed: of each job one
    step at a time, in order.
    """

    def __init__(self, stored: Statements, evaluator: Evaluator) -> None:
        """`stored` are the statements of backfills."""
        self._sql = stored
        self._evaluator = evaluator
        self._operators = operators()
        self._storing = ThreadPoolExecutor(1, thread_name_prefix="storing")

    def steps(self, plan: Plan) -> Iterator[Step]:
        """Yield after some trees each.

        Raises Refused where it would be too much, Ended, Unavailable.
        """
        filled = StreamRef(plan.service_object, plan.stream)
        concerned = Concerned(plan.service_objects, filled)
        means = Means(str(plan.caller), self._evaluator, self._operators)
        bounds = Bounds(plan.hops, plan.computations)
        used = self._used(plan)
        growing = Growing(concerned, self._before(plan), plan.span, bounds, means)
        try:
            for _ in self._stored_rows(plan, concerned, growing):
                now = self._used(plan) + growing.operating
                yield Step(b"", max(0.0, now - used))
                used = now
        except InfraError as error:
            raise Unavailable(f"the sandbox cannot run the code: {error}") from error

    def _stored_rows(self, plan: Plan, concerned: Concerned, growing: Growing) -> Iterator[None]:
        size = done = 0
        stored: Future[None] | None = None
        for done, rows in self._rows(plan, concerned, growing):
            size += sum(ROW_BYTES + len(each.document) for each in rows)
            if size > plan.most_bytes:
                raise Refused(
                    f"More than {plan.most_bytes:,} bytes come of it, which is all "
                    "that there is room for"
                )
            if stored is not None:
                stored.result()
            stored = self._storing.submit(self._store, plan, rows, done)
            yield
        if stored is not None:
            stored.result()

    def _rows(
        self, plan: Plan, concerned: Concerned, growing: Growing
    ) -> Iterator[tuple[int, list[NewRow]]]:
        """Yield how many updates are read, in all, and some new rows."""
        done = 0
        for some in _together(self._trees(plan, concerned)):
            read = [each for tree in some for each in tree if each.update.stream in concerned.read]
            done += len(read)
            for rows in growing.grow(some):
                yield done, rows
        for rows in growing.finish():
            yield done, rows

    def _trees(self, plan: Plan, concerned: Concerned) -> Iterator[Tree]:
        paths = cache(concerned.paths)
        histories = [
            self._history(plan, ref, is_computed=ref in concerned.computed)
            for ref in concerned.streams
            if ref in plan.numbers
        ]
        for some in merged(histories):
            yield from trees(some, paths)

    def _history(self, plan: Plan, ref: StreamRef, *, is_computed: bool) -> Iterator[Stored]:
        """Yield the updates of a stream; of what is computed anew only what was sent into it."""
        span = plan.span
        yield from self._pages(plan, ref, (span.reads_since, span.since), only_sent=False)
        yield from self._pages(plan, ref, (span.since, span.reads_until), only_sent=is_computed)

    def _pages(
        self, plan: Plan, ref: StreamRef, span: tuple[Timestamp, Timestamp], *, only_sent: bool
    ) -> Iterator[Stored]:
        after, until = span
        tenant = plan.outside.get(ref, plan.caller)
        while after < until:
            rows = self._sql.rows(
                "page",
                tenant=tenant,
                stream=plan.numbers[ref],
                after=after,
                until=until,
                only_sent=only_sent,
                rows=PAGE_ROWS,
                bytes=PAGES_BYTES // len(plan.numbers),
            )
            for row in rows:
                yield _stored(plan, ref, row)
            if not rows:
                return
            after = rows[-1][0] + 1

    def _before(self, plan: Plan) -> dict[StreamRef, Stored]:
        found = {}
        for ref, number in plan.numbers.items():
            tenant = plan.outside.get(ref, plan.caller)
            values = {"tenant": tenant, "stream": number, "since": plan.span.reads_since}
            row = self._sql.row("before", **values)
            if row is not None:
                found[ref] = _stored(plan, ref, row)
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


def _stored(plan: Plan, ref: StreamRef, row: Row) -> Stored:
    timestamp, text, *place = row
    found = Stored(timestamp, ref, text.encode(), *place)
    return found.of_outside(plan.partition) if ref in plan.outside else found


def _together(every: Iterator[Tree]) -> Iterator[list[Tree]]:
    """Yield trees that are grown together."""
    some: list[Tree] = []
    size = 0
    for tree in every:
        some.append(tree)
        size += sum(len(each.update.document) for each in tree)
        if len(some) == TREES or size >= TREES_BYTES:
            yield some
            some, size = [], 0
    yield some
