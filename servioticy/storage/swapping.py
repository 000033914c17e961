"""A backfill takes its place: slice by slice, in one transaction that is open meanwhile.

Readers see the old rows until it commits, and the new ones from then on. It has a connection of
its own, so others are stored between two slices; and it ends with its connection, as if it had
never begun. Nobody else writes what it does: what could waits behind the record that tells of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import psycopg2.errors

from servioticy.domain.pauses import Paused
from servioticy.errors import Unavailable
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

_SQL = queries("swapping")

SLICE_ROWS = 500
SLICE_BYTES = 256 * 1024
"""Between two pauses: some ten milliseconds. The first row of a slice whatever its size."""
SLICES_AT_ONCE = 20
"""Where others wait until all of it is done."""
LOCK_WAIT = "100ms"
"""For a row that somebody else has locked; then it begins anew."""
LOCKED = 20
"""Times that it begins anew for that, one after the other, before it is put back."""
ATTEMPTS = 5
"""Of a backfill whose definitions change again and again."""
GONE = "what was computed is gone meanwhile"
HELD = "others are changing the rows that it changes"
WRONG = "an error of the platform kept it from taking its place"
MOVED = "its Service Objects were moved to where others are computed"

_SWAP = 1_701_015  # class of our advisory locks, beside those of the partition store
_AT_LAST = ("amount_filled", "note_filled", "drop_filled_blocks", "end_taken_back_in_span")
_BEFORE_ALL = {"stream": -(1 << 63), "after": -(1 << 63)}


class _InVain(Exception):
    """It does not take its place, and is to be computed anew."""


class _Cancelled(Exception):
    """Its tenant wants it no more."""


def swapped(database: Database, job: str, *, at_once: bool) -> Paused[None]:
    """Return the work to have a backfill take its place, if that still stands.

    Until it has come to its end nothing of it is seen, and nothing is left where it is given up.
    `at_once` somebody waits for the end: then a large one is put back, to be computed anew.
    """
    locked = 0
    with closing(database.another()) as own:
        while True:
            try:
                with own.transaction():
                    yield from _swapped(own, job, at_once=at_once)
            except _Cancelled:
                return
            except _InVain as error:
                yield from _put_back(own, job, str(error), ATTEMPTS)
                return
            except Unavailable as error:
                if not isinstance(error.__cause__, psycopg2.errors.LockNotAvailable):
                    raise
                locked += 1
                if locked == LOCKED:
                    yield from _put_back(own, job, HELD, ATTEMPTS)
                    return
                yield
            except Exception as error:
                # Nobody would end it: its record is a dead letter after that.
                yield from _put_back(own, job, f"{WRONG} ({type(error).__name__})", 0)
                raise
            else:
                yield from _cleared(own, job, "done")
                return


def _put_back(own: Database, job: str, why_not: str, attempts: int) -> Paused[None]:
    """It is to be computed anew, or has failed where that has been so many times."""
    yield from _cleared(own, job, "swapping")
    own.rows(_SQL["in_vain"], {"job": job, "why_not": why_not, "attempts": attempts})


def _swapped(own: Database, job: str, *, at_once: bool) -> Paused[None]:
    own.rows(_SQL["wait_little"], {"wait": LOCK_WAIT})
    while not own.rows(_SQL["swap_alone"], {"key": _SWAP, "job": job})[0][0]:
        if at_once:
            raise _InVain(MOVED)
        yield  # whoever had the partition before is still at it
    row = own.row(_SQL["swapping"], {"job": job})
    if row is None:
        return
    tenant, since, until, made, computed = row
    values = {"job": job, "tenant": tenant, "since": since, "until": until, "computed": computed}
    (why_not,) = own.rows(_SQL["why_not"], values)[0]
    if why_not is not None:
        raise _InVain(why_not)
    amount = slices = read = 0
    for count, size in _slices(own, values):
        read, amount, slices = read + count, amount + size, slices + 1
        if at_once and slices > SLICES_AT_ONCE:
            raise _InVain(MOVED)
        yield
    if read != made:
        raise _InVain(GONE)
    for name in _AT_LAST:
        own.rows(_SQL[name], values | {"bytes": amount})
    if not own.rows(_SQL["end_swap"], values):
        raise _Cancelled


def _slices(own: Database, values: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Let the old rows go and the new ones come; yield how many have come, and the bytes more."""
    bounds = {"most": SLICE_ROWS, "most_bytes": SLICE_BYTES}
    for stream in values["computed"]:
        after = values["since"]
        while after is not None:
            last, less = own.rows(
                _SQL["drop_slice"], {**values, **bounds, "stream": stream, "after": after}
            )[0]
            yield 0, -less
            after = None if last is None else last + 1
    place: dict[str, int] | None = _BEFORE_ALL
    while place is not None:
        count, more, stream, at = own.rows(_SQL["fill_slice"], {**values, **bounds, **place})[0]
        yield count, more
        place = None if stream is None else {"stream": stream, "after": at}


def _cleared(own: Database, job: str, state: str) -> Paused[None]:
    """Forget the rows beside, as long as the job is in that state."""
    named = {"job": job, "state": state, "most": SLICE_ROWS}
    place: dict[str, int] | None = _BEFORE_ALL
    while place is not None:
        row = own.row(_SQL["clear_slice"], {**named, **place})
        place = None if row is None else {"stream": row[0], "after": row[1]}
        yield
