"""What history has of streams, in Postgres."""

from __future__ import annotations

from collections.abc import Sequence

from servioticy.ports.past import MAX_BYTES, StoredPast, WantedPast
from servioticy.storage.arrays import columns, numbers
from servioticy.storage.database import Database
from servioticy.storage.queries import queries

_SQL = queries("past")


def past(
    database: Database, wanted: Sequence[WantedPast]
) -> Sequence[Sequence[StoredPast] | None]:
    """Of each what is stored of it: single updates are looked up together."""
    single = {n: each for n, each in enumerate(wanted) if _is_single(each)}
    newest = [n for n, each in enumerate(wanted) if each.is_newest]
    found: list[Sequence[StoredPast] | None] = [[] for _ in wanted]
    if single:
        streams, times = columns([(each.streams[0], each.begin) for each in single.values()], 2)
        values = {"streams": numbers(streams), "timestamps": numbers(times)}
        rows = {
            (stream, at): StoredPast(stream, at, text.encode())
            for stream, at, text in database.rows(_SQL["single"], values)
        }
        for number, each in single.items():
            update = rows.get((each.streams[0], each.begin))
            found[number] = [] if update is None else [update]
    if newest:
        asked = [(n, stream, wanted[n].until) for n in newest for stream in wanted[n].streams]
        places, streams, untils = columns(asked, 3)
        values = {
            "places": numbers(places),
            "streams": numbers(streams),
            "untils": numbers(untils),
        }
        for number in newest:
            found[number] = []
        for number, stream, at, text in database.rows(_SQL["newest"], values):
            found[number] = [*(found[number] or ()), StoredPast(stream, at, text.encode())]
    for number, each in enumerate(wanted):
        if number not in single and not each.is_newest and each.streams:
            found[number] = _span(database, each)
    return found


def _is_single(wanted: WantedPast) -> bool:
    is_one = len(wanted.streams) == 1 and wanted.begin == wanted.until
    return is_one and not wanted.is_newest


def _span(database: Database, wanted: WantedPast) -> Sequence[StoredPast] | None:
    streams, begin, until, most, _ = wanted
    values = {"streams": numbers(streams), "begin": begin, "until": until, "rows": most + 1}
    (size,) = database.rows(_SQL["size"], values)
    rows, size_bytes = size
    if rows > most or size_bytes > MAX_BYTES:
        return None
    return [
        StoredPast(stream, at, text.encode())
        for stream, at, text in database.rows(_SQL["span"], values)
    ]
