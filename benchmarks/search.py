"""How long a search of one stream of a million updates takes, through the API.

Values jump from update to update, so no part of the stream is without what is searched for.
The first search of each kind makes the columns; the later ones differ from each other.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from benchmarks import ground
from benchmarks.connection import Connection
from servioticy.settings import Settings
from servioticy.storage.database import Database

CHANCE = random.Random(1)  # noqa: S311  it chooses what is searched for
CHANNELS = {"n": "number", "location": "geo_point", "text": "string"}
DOCUMENT = {"streams": {"s": {"channels": {name: {"type": t} for name, t in CHANNELS.items()}}}}
FILL = """
INSERT INTO updates (tenant_id, stream_id, "timestamp", document, version,
                     log_partition, log_offset, log_position)
SELECT streams.tenant_id, streams.id, n, json_build_object(
           'channels', json_build_object(
               'n', json_build_object('current-value', random() * 1000000),
               'location', json_build_object('current-value', json_build_array(
                   random() * 360 - 180, random() * 180 - 90)),
               'text', json_build_object('current-value', format(
                   'sensor %%s room%%s', (random() * 9)::int, (random() * 20000)::int))),
           'lastUpdate', n), 1, 0, 0, 0
  FROM streams, generate_series(1, %(rows)s) AS n
 WHERE service_object = %(id)s
"""


def number(_rows: int) -> dict[str, Any]:
    """Return a search for a ten-thousandth of the numbers."""
    low = CHANCE.random() * 999_900
    field = "channels.n.current-value"
    bounds = {"rangefrom": low, "rangeto": low + 100}
    return {"numericrange": True, "numericrangefield": field, **bounds}


def place(_rows: int) -> dict[str, Any]:
    """Return a search for what is at most 100 km away."""
    at = {"pointlat": CHANCE.uniform(-60, 60), "pointlon": CHANCE.uniform(-180, 180)}
    return {"geodistance": True, "geodistanceunit": "km", "geodistancevalue": 100, **at}


def box(_rows: int) -> dict[str, Any]:
    """Return a search for what is in a box of two degrees."""
    south, west = CHANCE.uniform(-60, 60), CHANCE.uniform(-180, 170)
    corners = {"geoboxupperleftlat": south + 2, "geoboxupperleftlon": west}
    corners |= {"geoboxbottomrightlat": south, "geoboxbottomrightlon": west + 2}
    return {"geoboundingbox": True, **corners}


def word(_rows: int) -> dict[str, Any]:
    """Return a search for a word that one of 20,000 updates has."""
    text = f"room{CHANCE.randrange(20_000)}"
    return {"match": True, "matchfield": "channels.text.current-value", "matchstring": text}


def newest(rows: int) -> dict[str, Any]:
    """Return a search for the hundred updates after a time."""
    first = {"timerange": True, "rangefrom": CHANCE.randrange(rows)}
    return {**first, "limit": True, "limitcount": 100}


def several(rows: int) -> dict[str, Any]:
    """Return a search for numbers in a wide box, in half of the time."""
    wide = {**number(rows), **box(rows), "rangefrom": 0, "rangeto": 500_000}
    wide["geoboxbottomrightlat"] -= 2
    return {**wide, "timerange": True, "limit": True, "limitcount": 100}


KINDS: tuple[Callable[[int], dict[str, Any]], ...] = (number, place, box, word, newest, several)


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print the times of first and of later searches, and of some beside late updates."""
    parser = argparse.ArgumentParser("servioticy bench search")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--searches", type=int, default=200, help="of each kind")
    options = parser.parse_args(arguments)
    with ground.platform(settings) as found:
        token = ground.token(found)
        with ground.client(found, token) as client:
            id_ = client.create(DOCUMENT)
        _fill(found, id_, options.rows)
        bench = Bench(Connection(found, token), id_, options.rows)
        for kind in KINDS:
            first = bench.timed(kind)[0]
            taken = [bench.timed(kind) for _ in range(options.searches)]
            _show(kind.__name__, first, taken)
        taken = [bench.beside_late() for _ in range(options.searches)]
        _show("number, each after a late update", bench.timed(number)[0], taken)


class Bench:
    """One stream, and a connection."""

    def __init__(self, connection: Connection, id_: str, rows: int) -> None:
        self._connection = connection
        self._id = id_
        self._rows = rows

    def timed(self, kind: Callable[[int], dict[str, Any]]) -> tuple[float, int]:
        """Search once; the seconds until all of the answer is there, and how many it has."""
        body = orjson.dumps(kind(self._rows))
        began = time.perf_counter()
        status, text = self._connection.request("POST", f"/{self._id}/streams/s/search", body)
        taken = time.perf_counter() - began
        if status not in (200, 204):
            raise RuntimeError(text.decode())
        return taken, len(orjson.loads(text)["data"]) if text else 0

    def beside_late(self) -> tuple[float, int]:
        """Search just after an update has come that is older than most."""
        at = CHANCE.randrange(self._rows)
        update = {"channels": {"n": {"current-value": 1}}, "lastUpdate": at}
        self._connection.request("PUT", f"/{self._id}/streams/s", orjson.dumps(update))
        self._connection.request("GET", f"/{self._id}/streams/s/lastUpdate")
        return self.timed(number)


def _fill(settings: Settings, id_: str, rows: int) -> None:
    database = Database(settings.store.dsn)
    began = time.perf_counter()
    database.rows(FILL, {"id": id_, "rows": rows})
    database.rows("VACUUM ANALYZE updates")
    database.close()
    print(f"{rows} updates stored in {time.perf_counter() - began:.0f} s", flush=True)


def _show(what: str, first: float, taken: Sequence[tuple[float, int]]) -> None:
    times = [seconds for seconds, _ in taken]
    found = sum(count for _, count in taken) / len(taken)
    p50, p99 = (1000 * ground.percentile(times, part) for part in (0.5, 0.99))
    print(
        f"{what}: the first {first:.2f} s, then p50 {p50:.1f} p99 {p99:.1f} "
        f"max {1000 * max(times):.1f} ms, {found:.0f} updates each",
        flush=True,
    )
