"""What really comes over a socket is what the AsyncAPI document says."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
from running_platform import RunningPlatform
from websockets.sync.client import connect

from schemas import contracts
from servioticy.domain.model import StreamRef

DOCUMENT = contracts.asyncapi()
LIVE = DOCUMENT["channels"]["live"]
TWICE = "function(raw) { return 2 * raw.channels.v['current-value']; }"
TWO_STREAMS: dict[str, Any] = {
    "version": "0.2.0",
    "streams": {
        "raw": {
            "channels": {"v": {"type": "number", "unit": "C"}, "location": {"type": "geo_point"}}
        },
        "twice": {"channels": {"v": {"type": "number", "unit": "C", "current-value": TWICE}}},
    },
}


def test_frames_fit_the_message_of_their_channel(platform: RunningPlatform) -> None:
    """A raw and a derived update; stored ones first, as `after` asks, then live ones."""
    so = platform.create(TWO_STREAMS)
    platform.put(StreamRef(so, "raw"), 1, v=1.5, location="41.38,2.11")
    for stream in ("raw", "twice"):
        assert platform.updates(StreamRef(so, stream))
    frames: dict[str, list[str]] = {}
    for stream in ("raw", "twice"):
        address = LIVE["address"].format(so=so, s=stream)
        query = f"access_token={platform.token}&after=0"
        assert {"access_token", "after"} == set(LIVE["bindings"]["ws"]["query"]["properties"])
        url = f"ws://127.0.0.1:{platform.live_port}{address}?{query}"
        with connect(url, proxy=None) as socket:
            frames[stream] = [str(socket.recv(timeout=30))]
            platform.put(StreamRef(so, "raw"), 2 if stream == "raw" else 3, v=2.5)
            frames[stream].append(str(socket.recv(timeout=30)))

    schema = DOCUMENT["components"]["messages"]["update"]["payload"]["schema"]
    whole = jsonschema.Draft202012Validator(
        {"components": DOCUMENT["components"], "allOf": [schema]}
    )
    for each in [*frames["raw"], *frames["twice"]]:
        whole.validate(json.loads(each))
    assert [json.loads(each)["lastUpdate"] for each in frames["raw"]] == [1, 2]
    assert json.loads(frames["twice"][0])["channels"]["v"] == {"current-value": 3.0, "unit": "C"}
