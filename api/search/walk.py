"""One search: the updates of a stream that fit, oldest first.

Where blocks are, their columns say which updates may fit, and only these are read. Elsewhere all
updates are read, and the columns are stored for who searches next. Newest updates, which do not
fill a block yet, are always read. So a search sees whatever is stored when it comes there.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

from api.search.blocks import ROWS, Block, Blocks, Plan, Rows
from servioticy.domain.model import StreamKey, Timestamp
from servioticy.domain.search.criteria import Criteria
from servioticy.ports.history import History, VersionedUpdate
from servioticy.ports.statements import Statements

PAGE_ROWS = 1_000
PAGE_BYTES = 262_144
"""Read at once; a page ends with the update that reaches it."""
LARGE_BYTES = 4_096
"""An update of more is read with regard to its size: a page of smaller ones is 4 MiB at most."""
FIRST_BLOCKS, BLOCKS_AT_ONCE = 64, 256
"""Whose columns are looked at together: at first few, as the first updates may be enough."""


class Walk:
    """Goes along the updates of a stream, once."""

    def __init__(
        self,
        history: History,
        stored: Statements,
        stream: StreamKey,
        blocks: Blocks,
        criteria: Criteria,
    ) -> None:
        self._history = history
        self._stored = stored
        self._stream = stream
        self._blocks = blocks
        self._criteria = criteria

    def found(self) -> Iterator[list[VersionedUpdate]]:
        """Yield the updates that fit, some at a time; none where a while has found none."""
        left = self._criteria.most
        for first, last in self._criteria.spans:
            for some in self._span(first, last):
                some = some if left is None else some[:left]
                yield some
                if left is not None:
                    left -= len(some)
                    if not left:
                        return

    def _span(self, first: Timestamp, last: Timestamp) -> Iterator[list[VersionedUpdate]]:
        if not self._blocks.conditions:
            yield from self._pages(first, last)
            return
        at: Timestamp | None = first
        while at is not None and at <= last:
            plan = self._blocks.plan(at, last)
            if plan is None:
                return
            at = yield from self._along(plan, at, last)

    def _along(
        self, plan: Plan, first: Timestamp, last: Timestamp
    ) -> Generator[list[VersionedUpdate], None, Timestamp | None]:
        """Go along the planned blocks and the gaps between; return where to go on, if anywhere."""
        at, begins, known = first, first, list[Block]()
        behind_a_block, most = False, FIRST_BLOCKS
        for block in plan.blocks:
            is_gap, lacks = at <= block.after, self._blocks.lacks(block)
            if known and (is_gap or lacks or len(known) == most):
                if not (yield from self._known(known, begins, last)):
                    return begins
                known, most = [], BLOCKS_AT_ONCE
            if is_gap:
                yield from self._gap(plan, at, block.after, closed=behind_a_block)
                at = block.after + 1
                if plan.stale:
                    return at
            if lacks:
                yield from self._fill(block, at, last)
            else:
                begins = begins if known else at
                known.append(block)
            at, behind_a_block = block.upto + 1, True
        if known and not (yield from self._known(known, begins, last)):
            return begins
        if not plan.complete:
            return at
        yield from self._gap(plan, at, last, closed=False)
        return None

    def _known(
        self, blocks: Sequence[Block], first: Timestamp, last: Timestamp
    ) -> Generator[list[VersionedUpdate], None, bool]:
        """Yield what fits of these blocks. False: one has gone, and nothing was yielded."""
        wanted = self._blocks.candidates(blocks, first, last)
        if wanted is None:
            return False
        while len(wanted):
            some = wanted[:PAGE_ROWS].tolist()
            rows = self._stored.rows(
                "updates",
                **self._stream._asdict(),
                timestamps=some,
                count=len(some),
                bytes=PAGE_BYTES,
            )
            wanted = wanted[rows[-1][0] :]
            updates = [
                VersionedUpdate(timestamp, document.encode(), version)
                for _, timestamp, document, version in rows
                if timestamp is not None
            ]
            unused = Rows()
            yield [each for each in updates if self._blocks.look(each, unused)]
        return True

    def _gap(
        self, plan: Plan, first: Timestamp, last: Timestamp, *, closed: bool
    ) -> Iterator[list[VersionedUpdate]]:
        """Yield what fits between blocks, and make blocks of it.

        Not of a few updates at an end that is not another block's: searches with many different
        ends would make as many small ones.
        """
        rows, after = Rows(), first - 1
        for page in self._pages(first, last):
            fitting = [each for each in page if self._blocks.look(each, rows)]
            if len(rows.timestamps) >= 2 * ROWS:
                after = self._cut(plan, after, rows)
            yield fitting
        if closed:
            self._blocks.add(plan, after, last, rows)
        elif len(rows.timestamps) >= ROWS:
            self._cut(plan, after, rows)

    def _cut(self, plan: Plan, after: Timestamp, rows: Rows) -> Timestamp:
        """Make a block of the first rows; return the timestamp of its last."""
        block = rows.cut(ROWS)
        self._blocks.add(plan, after, block.timestamps[-1], block)
        return block.timestamps[-1]

    def _fill(
        self, block: Block, first: Timestamp, last: Timestamp
    ) -> Iterator[list[VersionedUpdate]]:
        """Yield what fits of a block that lacks columns, and make these, if all of it is read."""
        rows = Rows()
        for page in self._pages(first, min(block.upto, last)):
            yield [each for each in page if self._blocks.look(each, rows)]
        if first == block.after + 1 and block.upto <= last:
            self._blocks.complete(block, rows)

    def _pages(self, first: Timestamp, last: Timestamp) -> Iterator[list[VersionedUpdate]]:
        """Yield all updates of a span, oldest first, as many at once as is safe."""
        while first <= last:
            page = self._small(first, last)
            if not page:
                page = self._history.page(self._stream, (first, last), PAGE_ROWS, PAGE_BYTES)
            if not page:
                return
            yield page
            first = page[-1].timestamp + 1

    def _small(self, first: Timestamp, last: Timestamp) -> list[VersionedUpdate]:
        """Return the next updates, up to one that is large."""
        rows = self._stored.rows(
            "small_updates",
            **self._stream._asdict(),
            first=first,
            last=last,
            rows=PAGE_ROWS,
            large=LARGE_BYTES,
        )
        return [VersionedUpdate(at, document.encode(), version) for at, document, version in rows]
