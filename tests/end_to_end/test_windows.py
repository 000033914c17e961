"""Windows on the running platform: over several streams, on event time, and as time goes by."""

from __future__ import annotations

import json
import threading
from statistics import mean, stdev
from typing import Any

from running_platform import RunningPlatform, until

from servioticy.domain.model import StreamRef

BASE = 1_700_000_000_000
"""A whole minute, in ms."""

SENSOR = {
    "streams": {"data": {"channels": {"v": {"type": "number"}, "where": {"type": "string"}}}}
}


def number(code: str) -> dict[str, str]:
    return {"type": "number", "current-value": code}


def values(platform: RunningPlatform, ref: StreamRef) -> list[dict[str, Any]]:
    return [
        {name: each["current-value"] for name, each in update["channels"].items()}
        | {"at": update["lastUpdate"] - BASE}
        for update in platform.updates(ref)
    ]


def waited(platform: RunningPlatform, ref: StreamRef, many: int) -> list[dict[str, Any]]:
    """Once there are so many."""
    until(lambda: len(values(platform, ref)) >= many, 20)
    return values(platform, ref)


def test_a_window_joins_several_streams(platform: RunningPlatform) -> None:
    first, second = platform.create(SENSOR), platform.create(SENSOR)
    document = {
        "version": "0.2.0",
        "groups": {"air": {"soIds": [first, second], "stream": "data"}},
        "streams": {
            "out": {
                "window": {"type": "tumbling", "size": "10s", "idle": "1h"},
                "channels": {
                    "count": number("function(air){return air.count}"),
                    "mean": number("function(air){return air.mean('v')}"),
                    "stdev": number("function(air){return air.stdev('v')}"),
                    "median": number("function(air){return air.quantile('v', 0.5)}"),
                    "attic": number(
                        "function(air){var w = air.by('where').attic; return w ? w.max('v') : -1}"
                    ),
                    "newest": number(
                        "function(air){return iot.value(air.updates[air.updates.length - 1], 'v')}"
                    ),
                },
            }
        },
    }
    out = StreamRef(platform.create(document), "out")
    read = [3, 1, 4, 1, 5, 9, 2, 6]
    for place, value in enumerate(read):
        device = (first, second)[place % 2]
        where = "attic" if place % 3 == 0 else "hall"
        platform.put(StreamRef(device, "data"), BASE + place * 1000, v=value, where=where)
    platform.put(StreamRef(first, "data"), BASE + 10_000, v=0, where="hall")
    assert values(platform, out) == [], "the second one may have more"
    status = json.loads(platform.request("GET", f"/{out.service_object}/streams/out/status")[2])
    assert status["windows"]["open"][0] == {"start": BASE, "end": BASE + 10_000}
    assert status["windows"]["held-back-by"] == f"{second}/data"
    platform.put(StreamRef(second, "data"), BASE + 10_001, v=0, where="hall")

    (found,) = waited(platform, out, 1)
    median = found.pop("median")
    assert 3 * 0.99 <= median <= 3 * 1.01
    assert found == {
        "count": 8,
        "mean": mean(read),
        "stdev": stdev(read),
        "attic": 3,
        "newest": 6,
        "at": 9_999,
    }


def test_the_last_window_comes_out_though_nothing_is_sent_and_feeds_the_next(
    platform: RunningPlatform,
) -> None:
    document = {
        "version": "0.2.0",
        "streams": {
            "door": {"channels": {"open": {"type": "boolean"}}},
            "visits": {
                "window": {"type": "session", "gap": "2s", "idle": "1s"},
                "channels": {
                    "count": number("function(door){return door.count}"),
                    "seconds": number("function(door){return (door.end-door.start)/1000-2}"),
                },
            },
            "each-three": {
                "window": {"type": "count", "size": 3},
                "channels": {"sum": number("function(visits){return visits.sum('count')}")},
            },
        },
    }
    id_ = platform.create(document)
    for at in (0, 1000, 1500, 10_000, 20_000, 21_999):
        platform.put(StreamRef(id_, "door"), BASE + at, open=True)

    assert waited(platform, StreamRef(id_, "visits"), 3)[2:] == [
        {"count": 2, "seconds": 1.999, "at": 23_998}
    ]
    assert waited(platform, StreamRef(id_, "each-three"), 1) == [{"sum": 6, "at": 23_998}]


def test_windows_come_out_before_their_end_and_once_more(platform: RunningPlatform) -> None:
    window = {"type": "tumbling", "size": "10s", "idle": "1h"}
    document = {
        "version": "0.2.0",
        "streams": {
            "data": {"channels": {"v": {"type": "number"}}},
            "out": {
                "window": window | {"emit": "updates", "lateness": "20s"},
                "channels": {"sum": number("function(data){return data.sum('v')}")},
            },
            "next": {"channels": {"v": number("function(out){return iot.value(out, 'sum')}")}},
        },
    }
    id_ = platform.create(document)
    out, data = StreamRef(id_, "out"), StreamRef(id_, "data")
    got: list[str] = []
    follower = platform.follow(out)
    threading.Thread(
        target=lambda: got.extend(follower.updates()), name="follower", daemon=True
    ).start()
    platform.put(data, BASE - 20_000, v=0)
    platform.put(data, BASE - 1, v=0)
    until(lambda: bool(got), 20)  # it is connected: what is early is sent, and kept nowhere
    for at, value in ((1000, 1), (2000, 2), (10_000, 5), (3000, 3)):
        platform.put(data, BASE + at, v=value)

    def sent() -> list[dict[str, Any]]:
        every = [json.loads(each) for each in got]
        return [each for each in every if each["lastUpdate"] > BASE]

    until(lambda: len(sent()) >= 5, 20)
    assert [
        (
            each["lastUpdate"] - BASE,
            each["channels"]["sum"]["current-value"],
            each.get("revision"),
            each.get("early"),
        )
        for each in sent()
    ] == [
        (9_999, 1, 1, True),
        (9_999, 3, 2, True),
        (9_999, 3, None, None),
        (19_999, 5, 1, True),
        (9_999, 6, 3, None),
    ]
    assert platform.updates(out)[2:] == [sent()[4]], "what is early is not kept"
    assert values(platform, StreamRef(id_, "next"))[2:] == [{"v": 3, "at": 9_999}]


def test_expressions_read_windows(platform: RunningPlatform) -> None:
    document = {
        "streams": {
            "air": {"channels": {"v": {"type": "number"}}},
            "range": {
                "window": {"type": "sliding", "size": "3s"},
                "channels": {"v": number("{$air.max.v} - {$air.min.v}")},
                "pre-filter": "{$air.count} > 1",
            },
        },
    }
    id_ = platform.create(document)
    for at, value in enumerate((1, 5, 2, 8, 8)):
        platform.put(StreamRef(id_, "air"), BASE + at * 1000, v=value)

    found = waited(platform, StreamRef(id_, "range"), 3)
    assert found == [{"v": 4, "at": 1000}, {"v": 4, "at": 2000}, {"v": 6, "at": 3000}]


def test_silence_is_told_and_so_is_its_end(platform: RunningPlatform) -> None:
    document = {
        "version": "0.2.0",
        "streams": {
            "power": {"channels": {"v": {"type": "number"}}},
            "alarm": {
                "silent": "2s",
                "channels": {
                    "silent": {
                        "type": "boolean",
                        "current-value": "function(power){return power.silent}",
                    },
                    "many": number("function(power){return power.count}"),
                    "which": {
                        "type": "string",
                        "current-value": "function(power){return power.stream}",
                    },
                },
            },
        },
    }
    id_ = platform.create(document)
    alarm = StreamRef(id_, "alarm")
    platform.put(StreamRef(id_, "power"), BASE, v=1)
    (first,) = waited(platform, alarm, 1)
    platform.put(StreamRef(id_, "power"), BASE + 5, v=1)
    second = waited(platform, alarm, 2)[1]

    assert (first["silent"], first["many"]) == (True, 1)
    assert (second["silent"], second["many"]) == (False, 0)
    assert first["which"] == second["which"] == f"{id_}/power"
    assert second["at"] > first["at"]
