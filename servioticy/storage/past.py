"""What history has of streams, in Postgres.

Which rows there are, and what they take on disk, is told without opening a document. Documents are
opened a few at a time, as one may be a hundred times as large as on disk: no more of them is in
memory than there is room for, and some.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from servioticy.ports.past import MAX_BYTES, MAX_TOGETHER, StoredPast, ToldPast, WantedPast
from servioticy.storage.arrays import columns, numbers
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

_SQL = queries("past")

PACKED_AT_ONCE = 64 * 1024
"""On disk, of documents that are opened together; the first one whatever its size."""
ROWS_AT_ONCE = 1000


class _Row(NamedTuple):
    stream: int
    at: int
    packed: int
    """Bytes on disk: no more than the document has."""


def past(database: Database, wanted: Sequence[WantedPast], room: int = MAX_TOGETHER) -> ToldPast:
    """Of each what is stored of it: single updates are looked up together."""
    answers: list[Sequence[StoredPast] | None] = [None for _ in wanted]
    single = _single(database, [each for each in wanted if each.is_single])
    documents = _Documents(database, list(single.values()))
    for n in sorted(range(len(wanted)), key=lambda n: not wanted[n].is_single):
        each = wanted[n]
        if each.is_single:
            most, rows = room, [*filter(None, [single.get((each.streams[0], each.begin))])]
        else:
            most, rows = min(room, MAX_BYTES), _rows(database, each)
            if len(rows) > each.most:
                continue
        found = documents.of(rows, most)
        if found is None and most == room:
            return ToldPast(answers, is_all=False)
        answers[n] = found
        room -= most if found is None else sum([len(update.document) for update in found])
    return ToldPast(answers)


def _single(database: Database, wanted: Sequence[WantedPast]) -> dict[tuple[int, int], _Row]:
    """The rows of single updates, in the order in which they are asked for."""
    if not wanted:
        return {}
    asked = dict.fromkeys([(each.streams[0], each.begin) for each in wanted])
    streams, times = columns(list(asked), 2)
    values = {"streams": numbers(streams), "timestamps": numbers(times)}
    return {(row[0], row[1]): _Row(*row) for row in database.rows(_SQL["single"], values)}


def _rows(database: Database, wanted: WantedPast) -> list[_Row]:
    """The rows of a span, one more than are asked for where there are more."""
    if not wanted.streams:
        return []
    streams, begin, until, most, is_newest = wanted
    values = {"streams": numbers(streams), "begin": begin, "until": until, "rows": most + 1}
    return [_Row(*row) for row in database.rows(_SQL["newest" if is_newest else "span"], values)]


class _Documents:
    """Those that have been opened, each once."""

    def __init__(self, database: Database, coming: Sequence[_Row]) -> None:
        """`coming` will be asked for one by one, in this order."""
        self._database = database
        self._coming = coming
        self._places = {each: n for n, each in enumerate(coming)}
        self._known: dict[tuple[int, int], bytes] = {}

    def of(self, rows: Sequence[_Row], most: int) -> list[StoredPast] | None:
        """The updates of these rows; None where they have more bytes than `most`."""
        if sum([each.packed for each in rows]) > most:
            return None
        found: list[StoredPast] = []
        left = most
        for n, each in enumerate(rows):
            if each[:2] not in self._known:
                self._open(rows, n)
            document = self._known.get(each[:2])
            if document is None:  # it is gone since then
                continue
            left -= len(document)
            if left < 0:
                return None
            found.append(StoredPast(each.stream, each.at, document))
        return found

    def _open(self, rows: Sequence[_Row], start: int) -> None:
        if len(rows) == 1 and rows[0] in self._places:
            rows, start = self._coming, self._places[rows[0]]
        some: list[_Row] = []
        packed = 0
        for each in islice(rows, start, start + ROWS_AT_ONCE):
            packed += each.packed
            if some and packed > PACKED_AT_ONCE:
                break
            some.append(each)
        streams, times, _ = columns(some, 3)
        values = {"streams": numbers(streams), "timestamps": numbers(times)}
        for stream, at, text in self._database.rows(_SQL["documents"], values):
            self._known[stream, at] = text.encode()
