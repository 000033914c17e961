"""A stream to search, its updates as the pipeline stores them, and criteria."""

from __future__ import annotations

from typing import Any

import orjson
from api_builders import Caller, Platform

from servioticy.domain.model import Channel, Stream, StreamRef
from servioticy.ports.batches import Batch, StoredUpdate
from servioticy.ports.effects import Erase

CHANNELS = {
    "n": {"type": "number"},
    "many": {"type": "array[number]"},
    "text": {"type": "string"},
    "location": {"type": "geo_point"},
    "a.b": {"type": "number"},
}
DOCUMENT = {"streams": {"a": {"channels": CHANNELS}, "b": {"channels": {"n": CHANNELS["n"]}}}}
STREAM = Stream(
    StreamRef("so", "a"), tuple(Channel(name, its["type"]) for name, its in CHANNELS.items())
)


def update(timestamp: int, **values: Any) -> dict[str, Any]:
    channels = {name: {"current-value": value} for name, value in values.items()}
    return {"channels": channels, "lastUpdate": timestamp}


class Store:
    """Stores updates as the pipeline does: what is newer than all is copied."""

    def __init__(self, platform: Platform, service_object: str) -> None:
        self._platform = platform
        self._key = platform.stream(service_object)
        self._offset = platform.store.begin(0)[0]
        self._newest = -1

    def add(self, *updates: dict[str, Any]) -> None:
        rows = []
        for place, each in enumerate(updates):
            at = each["lastUpdate"]
            is_new, self._newest = at > self._newest, max(at, self._newest)
            document, offset = orjson.dumps(each), self._offset
            rows.append(StoredUpdate(*self._key, at, document, 1, offset, place, is_new))
        self._store(rows)

    def erase(self, service_object: str) -> None:
        self._store([], Erase(service_object, "a", 1))
        stored_as = "SELECT stored_as FROM streams WHERE id = %(stream_id)s"
        ((number,),) = self._platform.database.rows(stored_as, self._key._asdict())
        self._key, self._newest = self._key._replace(stream_id=number), -1

    def _store(self, rows: list[StoredUpdate], effect: Any = None) -> None:
        offset, self._offset = self._offset, self._offset + 1
        self._platform.store.store(Batch(0, offset, offset + 1, 0, rows, effect=effect))


def search(caller: Caller, so: str, criteria: Any, stream: str = "a") -> Any:
    return caller.ask("POST", f"/{so}/streams/{stream}/search", json=criteria)


def times(answer: Any) -> list[int]:
    assert answer.status_code in (200, 204), answer.text
    return [each["lastUpdate"] for each in answer.get_json()["data"]] if answer.data else []


FIELD = "channels.{}.current-value"
NUMBER = {"numericrange": True, "numericrangefield": FIELD.format("n")}
DISTANCE = {"geodistance": True, "geodistanceunit": "km", "pointlat": 15, "pointlon": 55}
MATCH = {"match": True, "matchfield": FIELD.format("text")}
BOX = (
    "geoboxupperleftlat",
    "geoboxupperleftlon",
    "geoboxbottomrightlat",
    "geoboxbottomrightlon",
)


def box(*corners: float) -> dict[str, Any]:
    return {"geoboundingbox": True, **dict(zip(BOX, corners, strict=True))}
