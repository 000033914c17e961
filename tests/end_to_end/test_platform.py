"""The platform as its users meet it: over REST and WebSocket, on real parts."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from running_platform import RunningPlatform, until

from servioticy.domain.letters import read_letter
from servioticy.domain.model import StreamRef
from servioticy.domain.records import DeadLetter
from servioticy.embedded.folder import read_run

DEVICE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}
VALUE = '.channels.v["current-value"]'


def composite(code: str, **groups: Any) -> dict[str, Any]:
    channels = {"v": {"type": "number", "current-value": code}}
    return {"version": "0.2.0", "groups": groups, "streams": {"out": {"channels": channels}}}


def group(*members: str) -> dict[str, Any]:
    return {"soIds": list(members), "stream": "data"}


def test_a_read_sees_what_was_derived_from_the_last_write(platform: RunningPlatform) -> None:
    """Clients of the original PUT and GET at once and expect their data.

    A read waits for it; where that takes too long for a request, it says so.
    """
    device = platform.create(DEVICE)
    doubled = platform.create(composite(f"function(d){{return d{VALUE}*2}}", d=group(device)))
    for number in range(1, 31):
        platform.put(StreamRef(device, "data"), number, v=number)

        status, body = read_whole(platform, f"/{doubled}/streams/out/lastUpdate")

        assert status == 200
        assert json.loads(body)["data"] == [
            {"channels": {"v": {"current-value": number * 2}}, "lastUpdate": number}
        ]


def read_whole(platform: RunningPlatform, path: str) -> tuple[int, bytes]:
    """Status and body of the first read that does not say that it is behind."""
    while True:
        status, headers, body = platform.request("GET", path)
        if "x-servioticy-behind" not in headers:
            return status, body


def test_templates_convert_filter_and_keep_units_out(platform: RunningPlatform) -> None:
    """The original's first document version, end to end."""
    device = platform.create(DEVICE)
    document = {
        "groups": {"d": group(device)},
        "aliases": [{"@celsius@": "{$d.channels.v.current-value}"}],
        "streams": {
            "out": {
                "channels": {
                    "v": {"type": "number", "unit": "F", "current-value": "@celsius@*1.8+32"}
                },
                "pre-filter": "{$d.}!=null && @celsius@>-50",
                "post-filter": "{$result.channels.v['current-value']} < 200",
            }
        },
    }
    out = StreamRef(platform.create(document), "out")
    for number, value in enumerate((-60, 20, 100, 25), start=1):
        platform.put(StreamRef(device, "data"), number, v=value)

    assert platform.updates(out) == [
        {"channels": {"v": {"current-value": 68}}, "lastUpdate": 2},
        {"channels": {"v": {"current-value": 77}}, "lastUpdate": 4},
    ]
    status = json.loads(platform.request("GET", f"/{out.service_object}/streams/out/status")[2])
    assert "filtered" in json.dumps(status)


def test_components_join_under_traffic(platform: RunningPlatform) -> None:
    """Two busy devices of two partitions meet in one composite; no update is lost."""
    devices = [platform.create(DEVICE) for _ in range(4)]
    stop = threading.Event()
    sent = dict.fromkeys(devices, 0)

    def drive(device: str, first: int) -> None:
        number = first
        while not stop.is_set():
            platform.put(StreamRef(device, "data"), number, v=number)
            sent[device] = number
            number += len(devices)

    drivers = [
        threading.Thread(target=drive, args=(device, n + 1)) for n, device in enumerate(devices)
    ]
    for each in drivers:
        each.start()
    until(lambda: all(at > 40 for at in sent.values()), 30)
    names = "abcd"
    terms = "+".join(f"({n}===null?0:{n}{VALUE})" for n in names)
    groups = {n: group(device) for n, device in zip(names, devices, strict=True)}
    total = platform.create(composite(f"function({','.join(names)}){{return {terms}}}", **groups))
    at_join = max(sent.values())
    until(lambda: all(at > at_join + 200 for at in sent.values()), 60)
    stop.set()
    for each in drivers:
        each.join()

    for n, device in enumerate(devices):
        stored = [u["lastUpdate"] for u in platform.updates(StreamRef(device, "data"))]
        assert stored == list(range(n + 1, sent[device] + 1, len(devices)))
    totals = platform.updates(StreamRef(total, "out"))
    times = [each["lastUpdate"] for each in totals]
    assert times == sorted(set(times))
    # The one with the largest timestamp may have arrived before others' last ones.
    newest = max(sent.values())
    assert times[-1] == newest
    values = [each["channels"]["v"]["current-value"] for each in totals]
    assert values == sorted(values)
    assert sum(sent.values()) - 3 * len(devices) ** 2 <= values[-1] <= sum(sent.values())


def test_a_poison_record_goes_to_the_dead_letters(platform: RunningPlatform) -> None:
    """What can never succeed is kept with its reason, and the partition goes on."""
    servers = (read_run(platform.data) or {})["bootstrap_servers"]
    producer = Producer({"bootstrap.servers": servers})
    poison = (b"\xff\xfe not JSON", b'{"kind":"update"}', b"", b'{"kind":"explode"}')
    for partition in (0, 1):
        for each in poison:
            producer.produce("updates", each, partition=partition)
    assert producer.flush(10) == 0
    device = platform.create(DEVICE)
    platform.put(StreamRef(device, "data"), 1, v=1)

    assert len(platform.updates(StreamRef(device, "data"))) == 1
    letters = _dead_letters(servers, 2 * len(poison))
    assert all(each.reason.startswith("unreadable") for each in letters)
    assert sorted(each.record for each in letters) == sorted(poison * 2)


def _dead_letters(servers: str, expected: int) -> list[DeadLetter]:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "test", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["dead-letters"])
    found: list[DeadLetter] = []

    def all_there() -> bool:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append(read_letter(message.value(), message.headers()))
        return len(found) >= expected

    until(all_there, 30)
    consumer.close()
    return found


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("function(d){while(true){}}", "timeout"),
        ("function(d){throw new Error('no such luck')}", "script-error"),
        ("function(d){return 'abc'}", "error"),
        ("function(d){return null}", "filtered"),
    ],
)
def test_what_went_wrong_can_be_read(code: str, verdict: str, platform: RunningPlatform) -> None:
    """Whoever asks why nothing came out gets an answer; neighbours are not disturbed."""
    device = platform.create(DEVICE)
    bad = platform.create(composite(code, d=group(device)))
    good = platform.create(composite(f"function(d){{return d{VALUE}}}", d=group(device)))
    platform.put(StreamRef(device, "data"), 1, v=1)

    assert len(platform.updates(StreamRef(good, "out"))) == 1
    assert platform.updates(StreamRef(bad, "out")) == []
    status, _headers, body = platform.request("GET", f"/{bad}/streams/out/status")
    assert status == 200
    assert verdict in body.decode()


def test_a_stream_that_keeps_hanging_is_suspended(platform: RunningPlatform) -> None:
    """After three processes its code is not run for a while, and its status says so.

    On a busy machine a process may have been ended in a batch that took too long, and was computed
    again.
    """
    device = platform.create(DEVICE)
    bad = platform.create(composite("function(d){while(true){}}", d=group(device)))
    for at in range(1, 6):
        platform.put(StreamRef(device, "data"), at, v=1)

    def told() -> tuple[str, dict[str, int]]:
        status = json.loads(platform.request("GET", f"/{bad}/streams/out/status")[2])
        return status["state"], {each["verdict"]: each["count"] for each in status["verdicts"]}

    # Slow ones are computed beside the others, each when it has its turn.
    until(lambda: sum(told()[1].values()) == 5, 60)
    state, verdicts = told()
    assert state == "suspended"
    assert verdicts.keys() == {"timeout", "suspended"}
    assert verdicts["timeout"] <= 3
    assert platform.updates(StreamRef(bad, "out")) == []
    until(lambda: cpu_seconds(platform, bad) > 0.2, 20)


def cpu_seconds(platform: RunningPlatform, service_object: str) -> float:
    """What the code of its stream has used."""
    body = platform.request("GET", f"/{service_object}/streams/out/status")[2]
    return float(json.loads(body)["cpu-seconds"])


def test_what_is_wrong_with_code_is_told_when_it_is_stored(platform: RunningPlatform) -> None:
    """With its stream, channel, line and column."""
    device = platform.create(DEVICE)
    document = composite("function(d){\n  return d +;\n}", d=group(device))
    status, _headers, body = platform.request("POST", "/", document)

    assert status == 400
    message = json.loads(body)["message"]
    assert message == "stream out: channel v: line 2, column 13: Unexpected token"


def test_a_chain_of_fifty_computes_to_its_end(platform: RunningPlatform) -> None:
    """Depth costs little: a whole tree is one batch, and one transaction."""
    streams: dict[str, Any] = {"s0": {"channels": {"v": {"type": "number"}}}}
    for n in range(1, 51):
        code = f"function(s{n - 1}){{return s{n - 1}{VALUE}+1}}"
        streams[f"s{n}"] = {"channels": {"v": {"type": "number", "current-value": code}}}
    device = platform.create({"version": "0.2.0", "streams": streams})
    platform.put(StreamRef(device, "s0"), 7, v=0)

    assert platform.updates(StreamRef(device, "s50")) == [
        {"channels": {"v": {"current-value": 50}}, "lastUpdate": 7}
    ]


def test_a_diamond_may_settle_before_it_joins(platform: RunningPlatform) -> None:
    """With `settle` the join never sees a new branch beside the old one of the same origin."""
    plain = f"function(s){{return s{VALUE}}}"
    slow = f"function(a){{return a{VALUE}}}"
    join = f"function(a, c){{return a{VALUE} - (c === null ? 0 : c{VALUE})}}"
    channel = {"type": "number"}
    document = {
        "version": "0.2.0",
        "streams": {
            "s": {"channels": {"v": channel}},
            "a": {"channels": {"v": {**channel, "current-value": plain}}},
            "b": {"channels": {"v": {**channel, "current-value": slow}}},
            "c": {
                "channels": {"v": {**channel, "current-value": f"function(b){{return b{VALUE}}}"}}
            },
            "first": {"channels": {"v": {**channel, "current-value": join}}},
            "settled": {
                "channels": {"v": {**channel, "current-value": join}},
                "diamonds": "settle",
            },
        },
    }
    device = platform.create(document)
    for number in (1, 2, 3):
        platform.put(StreamRef(device, "s"), number, v=number * 10)

    def values(stream: str) -> list[int]:
        found = platform.updates(StreamRef(device, stream))
        return [each["channels"]["v"]["current-value"] for each in found]

    assert values("settled") == [0, 0, 0]
    assert values("first") == [10, 10, 10]


def test_a_loop_across_service_objects_ends_where_its_update_began(
    platform: RunningPlatform,
) -> None:
    """Each of two composites reads the other; one update runs once around and no further."""
    device = platform.create(DEVICE)
    plus = f"function(d, other){{return d{VALUE} + (other === null ? 0 : other{VALUE})}}"
    first = platform.create(composite(f"function(d){{return d{VALUE}}}", d=group(device)))
    other = {"soIds": [first], "stream": "out"}
    second = platform.create(composite(plus, d=group(device), other=other))
    closed = composite(plus, d=group(device), other={"soIds": [second], "stream": "out"})
    status, _headers, body = platform.request("PUT", f"/{first}", closed)
    assert status == 200, body
    for number in (1, 2):
        platform.put(StreamRef(device, "data"), number, v=10)

    def values(service_object: str) -> list[int]:
        found = platform.updates(StreamRef(service_object, "out"))
        return [each["channels"]["v"]["current-value"] for each in found]

    # In order of subscription: the first with the second's last of before, which is stored at
    # once; then the second with that. What each wakes in the other is no newer than its last.
    assert values(first) == [10, 30]
    assert values(second) == [20, 40]
