"""Documents that change, go back and go away while updates flow, on the whole platform."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from running_platform import RunningPlatform, until

from servioticy.domain.model import StreamRef

DEVICE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}
VALUE = '.channels.v["current-value"]'


def scaled(device: str, factor: int) -> dict[str, Any]:
    code = f"function(d){{return d{VALUE}*{factor}}}"
    channels = {"v": {"type": "number", "current-value": code}}
    groups = {"d": {"soIds": [device], "stream": "data"}}
    return {"version": "0.2.0", "groups": groups, "streams": {"out": {"channels": channels}}}


class Traffic:
    """A device that sends 1, 2, 3, ... and knows how far it is."""

    def __init__(self, platform: RunningPlatform, stream: StreamRef) -> None:
        self._platform, self._stream = platform, stream
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._drive)
        self.begun = self.accepted = 0

    @contextmanager
    def flowing(self) -> Iterator[Traffic]:
        self._thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            self._thread.join()

    def go_on(self, more: int = 30) -> None:
        """Wait until so many more are accepted."""
        wanted = self.accepted + more
        until(lambda: self.accepted >= wanted, 60)

    def _drive(self) -> None:
        while not self._stop.is_set():
            self.begun += 1
            self._platform.put(self._stream, self.begun, v=self.begun)
            self.accepted = self.begun


def labelled(platform: RunningPlatform, stream: StreamRef) -> list[dict[str, Any]]:
    platform.updates(stream)  # until everything is stored
    path = f"/{stream.service_object}/streams/{stream.stream}?versions=true"
    return list(json.loads(platform.request("GET", path)[2])["data"])


def test_a_changed_script_takes_effect_at_one_place_and_back(platform: RunningPlatform) -> None:
    """Every update is computed once; what is accepted after the 200 by the new version."""
    device = platform.create(DEVICE)
    out = StreamRef(platform.create(scaled(device, 10)), "out")
    with Traffic(platform, StreamRef(device, "data")).flowing() as traffic:
        traffic.go_on()
        before, change = traffic.accepted, scaled(device, 20)
        status, _headers, body = platform.request("PUT", f"/{out.service_object}", change)
        assert (status, json.loads(body)["version"]) == (200, 2)
        changed = traffic.begun
        traffic.go_on()
        back = f"/{out.service_object}/versions/1/activate"
        until_back = traffic.accepted
        assert platform.request("POST", back)[0] == 200
        returned = traffic.begun
        traffic.go_on()

    data = labelled(platform, out)
    times = [each["lastUpdate"] for each in data]
    by_version = [each["version"] for each in data]
    assert times == list(range(1, traffic.accepted + 1))
    for each in data:
        factor = {1: 10, 2: 20}[each["version"]]
        assert each["channels"]["v"]["current-value"] == each["lastUpdate"] * factor
    first, last = by_version.index(2), len(data) - by_version[::-1].index(2)
    assert set(by_version[first:last]) == {2}, "the versions are mixed"
    assert before <= first <= changed
    assert until_back <= last <= returned


def test_a_group_may_be_widened_while_both_sides_are_busy(platform: RunningPlatform) -> None:
    """The components become one; what was derived before stays, and nothing is missing."""
    devices = [platform.create(DEVICE) for _ in range(2)]
    out = StreamRef(platform.create(scaled(devices[0], 1)), "out")
    streams = [StreamRef(device, "data") for device in devices]
    with (
        Traffic(platform, streams[0]).flowing() as first,
        Traffic(platform, streams[1]).flowing() as second,
    ):
        first.go_on()
        wider = scaled(devices[0], 1)
        wider["groups"]["d"]["soIds"] = devices
        assert platform.request("PUT", f"/{out.service_object}", wider)[0] == 200
        first.go_on()
        second.go_on()

    for stream, traffic in zip(streams, (first, second), strict=True):
        assert [u["lastUpdate"] for u in platform.updates(stream)] == list(
            range(1, traffic.accepted + 1)
        )
    found = platform.updates(out)
    times = [each["lastUpdate"] for each in found]
    assert times == sorted(set(times))
    assert all(each["channels"]["v"]["current-value"] == each["lastUpdate"] for each in found)
    assert times[-1] == max(first.accepted, second.accepted)


def test_a_deleted_object_is_gone_and_its_readers_go_on(platform: RunningPlatform) -> None:
    kept, gone = platform.create(DEVICE), platform.create(DEVICE)
    document = scaled(kept, 1)
    document["groups"]["d"]["soIds"] = [kept, gone]
    out = StreamRef(platform.create(document), "out")
    platform.put(StreamRef(gone, "data"), 1, v=1)
    platform.put(StreamRef(kept, "data"), 2, v=2)

    assert platform.request("DELETE", f"/{gone}")[0] == 204

    update = {"channels": {"v": {"current-value": 3}}, "lastUpdate": 3}
    for method, path, body in (
        ("GET", f"/{gone}", None),
        ("GET", f"/{gone}/streams/data", None),
        ("PUT", f"/{gone}/streams/data", update),
        ("DELETE", f"/{gone}", None),
    ):
        assert platform.request(method, path, body)[0] == 404, (method, path)
    platform.put(StreamRef(kept, "data"), 4, v=4)
    assert [each["lastUpdate"] for each in platform.updates(out)] == [1, 2, 4]


def test_erased_data_do_not_hold_a_composite_back(platform: RunningPlatform) -> None:
    """Deleting a stream's data forgets its last output, at its place in the log."""
    device = platform.create(DEVICE)
    out = StreamRef(platform.create(scaled(device, 1)), "out")
    platform.put(StreamRef(device, "data"), 1000, v=1)
    assert len(platform.updates(out)) == 1

    for stream in (out, StreamRef(device, "data")):
        path = f"/{stream.service_object}/streams/{stream.stream}"
        assert platform.request("DELETE", path)[0] == 204
        assert platform.updates(stream) == []
    platform.put(StreamRef(device, "data"), 5, v=5)

    assert [each["lastUpdate"] for each in platform.updates(out)] == [5]


def test_a_change_of_something_older_is_refused(platform: RunningPlatform) -> None:
    """Two editors of one document: the second is told, and nothing of the first is lost."""
    device = platform.create(DEVICE)
    id_ = platform.create(scaled(device, 1))
    etag = platform.request("GET", f"/{id_}")[1]["etag"]
    assert (
        platform.request("PUT", f"/{id_}", scaled(device, 2), headers={"If-Match": etag})[0] == 200
    )

    status, headers, body = platform.request(
        "PUT", f"/{id_}", scaled(device, 3), headers={"If-Match": etag}
    )

    assert status == 412, body
    assert headers["etag"] == platform.request("GET", f"/{id_}")[1]["etag"] != etag


def test_a_tree_is_shown_before_any_data_flow(platform: RunningPlatform) -> None:
    device = platform.create(DEVICE)
    first = platform.create(scaled(device, 1))
    second = scaled(first, 2)
    second["groups"]["d"]["stream"] = "out"
    last = platform.create(second)

    tree = json.loads(platform.request("GET", f"/{device}/streams/data/tree")[2])

    assert (tree["depth"], tree["computations"]) == (2, 2)
    assert [node["stream"] for level in tree["levels"] for node in level] == [
        str(StreamRef(first, "out")),
        str(StreamRef(last, "out")),
    ]


def test_a_revoked_grant_ends_the_flow_at_one_place(platform: RunningPlatform) -> None:
    """Another tenant's composite has every update until then and none after, and is told why.

    What it was used for is told to both sides, by that grant, though it has ended.
    """
    device = platform.create(DEVICE)
    token = platform.command("tenant", "create", "deriver").stdout.strip()
    told = platform.request("GET", "/grants", token=token)[2]
    wanted = {"tenant": json.loads(told)["tenant"], "use": "derive"}
    answer = platform.request("POST", f"/{device}/streams/data/grants", wanted)
    assert answer[0] == 201
    grant = json.loads(answer[2])["id"]
    status, _headers, body = platform.request("POST", "/", scaled(device, 2), token=token)
    assert status == 201
    out = f"/{json.loads(body)['id']}/streams/out"
    with Traffic(platform, StreamRef(device, "data")).flowing() as traffic:
        traffic.go_on()
        before = traffic.accepted
        assert platform.request("DELETE", f"/grants/{grant}")[0] == 204
        revoked = traffic.begun
        traffic.go_on()

    def verdicts() -> dict[str, int]:
        told = json.loads(platform.request("GET", f"{out}/status", token=token)[2])["verdicts"]
        return {each["verdict"]: each["count"] for each in told}

    # The end comes over the border behind all data, a hop of the log later.
    until(lambda: "revoked" in verdicts(), 60)
    data = json.loads(platform.request("GET", out, token=token)[2])["data"]
    assert [each["lastUpdate"] for each in data] == list(range(1, len(data) + 1))
    assert before <= len(data) <= revoked
    assert verdicts() == {"emitted": len(data), "revoked": 1}
    assert platform.request("GET", f"/{device}/streams/data", token=token)[0] == 401

    def accounted() -> bool:
        found = json.loads(platform.request("GET", "/usage", token=token)[2])["data"]
        return [each["computations"].get("emitted") for each in found] == [len(data)]

    until(accounted, 60)
    found = json.loads(platform.request("GET", "/usage?by=grant", token=token)[2])["data"]
    (used,) = [each for each in found if each["grant"] == grant]
    assert used["storedUpdates"] == len(data)
    assert used["processorSeconds"] > 0
    for side in (platform.token, token):
        assert "lastUsedAt" in json.loads(
            platform.request("GET", f"/grants/{grant}", token=side)[2]
        )
    provided = json.loads(platform.request("GET", "/usage?side=provided&by=grant")[2])["data"]
    assert [each["composites"] for each in provided if each["grant"] == grant] == [1]
