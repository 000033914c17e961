"""A workflow beside the streams, joined with them at both ends."""

from __future__ import annotations

from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until
from workflow_builders import a_document

from servioticy.domain.model import StreamRef

DEVICE = {"streams": {each: {"channels": {"t": {"type": "number"}}} for each in ("raw", "clean")}}
CODE = """function(update) {
    const t = update.channels.t['current-value'];
    if (t > 0) return {channels: {t: {'current-value': t * 2}}, lastUpdate: update.lastUpdate};
}"""


def test_updates_of_a_stream_come_cleaned_to_another(platform: RunningPlatform) -> None:
    device = platform.create(DEVICE)
    ends = {
        end: {"stream": {"serviceObject": device, "stream": stream}}
        for end, stream in (("source", "raw"), ("sink", "clean"))
    }
    document = a_document(procedures={"clean": {"code": CODE}}, **ends)
    status, _, told = platform.request("POST", "/workflows", document)
    assert status == 201, told

    for at, value in enumerate((1, -1, 3), 1):
        platform.put(StreamRef(device, "raw"), at, t=value)
    clean = StreamRef(device, "clean")
    until(lambda: len(platform.updates(clean)) == 2, SECONDS_TO_RECOVER)

    assert [
        (each["lastUpdate"], each["channels"]["t"]["current-value"])
        for each in platform.updates(clean)
    ] == [(1, 2), (3, 6)]
