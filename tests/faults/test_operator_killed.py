"""A program of a tenant's own computes a stream; it, and who asks it, may be killed.

All that was accepted comes out once and in order, at the sockets and in the store.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from operator_folders import write
from process_walks import below, pipeline_workers
from running_platform import SECONDS_TO_RECOVER, RunningPlatform, until

from servioticy.domain.model import StreamRef
from servioticy.errors import Unavailable

UPDATES = 60
PROGRAM_KILLED_AT, WORKERS_KILLED_AT, CHANGED_AT = 15, 30, 45
BEGIN = 1_700_000_000

MAIN = """
from servioticy_operator import serve


def count(event, state):
    state.put("count", state.get("count", 0) + 1)
    return {"count": state.get("count"), "v": event.value("v"), "by": VERSION}


serve(count)
"""


SLOW = f"import time\ntime.sleep(3)\n{MAIN}"
"""It is not ready before somebody has died."""


def a_document(device: str, version: int, name: str = "counts") -> dict[str, object]:
    channels = {name: {"type": "number"} for name in ("count", "v", "by")}
    return {
        "version": "0.2.0",
        "groups": {"device": {"soIds": [device], "stream": "data"}},
        "streams": {
            "counted": {"operator": {"name": name, "version": version}, "channels": channels}
        },
    }


def push(
    platform: RunningPlatform, folder: Path, version: int, name: str = "counts", main: str = MAIN
) -> None:
    write(folder, f"VERSION = {version}\n{main}", name=name, state=True)
    pushed = platform.command("operator", "push", str(folder), "--token", platform.token).stdout
    assert pushed.split() == [f"{name}@{version}"]


def programs_of(platform: RunningPlatform) -> list[int]:
    """The processes of the program, wherever they are below the platform's."""
    found = []
    for pid in below(platform.process.pid):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            cwd = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if b"main.py" in command and b"SERVIOTICY_OPERATOR" in cwd:
            found.append(pid)
    return found


def kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def test_nothing_is_lost_or_doubled_or_out_of_order(
    platform: RunningPlatform, tmp_path: Path
) -> None:
    push(platform, tmp_path / "one", 1)
    device = platform.create({"streams": {"data": {"channels": {"v": {"type": "number"}}}}})
    status, _headers, body = platform.request("POST", "/", a_document(device, 2))
    assert status == 400, body
    assert b"there is no version 2 of the program counts" in body
    composite = platform.create(a_document(device, 1))
    counted = StreamRef(composite, "counted")
    seen: list[int] = []
    stop = threading.Event()

    def watch() -> None:
        for frame in platform.follow(counted).updates(stop):
            seen.append(json.loads(frame)["lastUpdate"])

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    killed: list[int] = []
    for number in range(UPDATES):
        if number == PROGRAM_KILLED_AT:
            until(lambda: bool(programs_of(platform)), SECONDS_TO_RECOVER)
            killed = programs_of(platform)
            kill(killed)
        if number == WORKERS_KILLED_AT:
            kill(pipeline_workers(platform.pids()["pipeline"]))
        if number == CHANGED_AT:
            push(platform, tmp_path / "two", 2)
            path = f"/{composite}"
            answered = platform.request("PUT", path, a_document(device, 2))
            assert answered[0] == 200, answered
        platform.put(StreamRef(device, "data"), BEGIN + number, v=float(number))
    expected = [BEGIN + number for number in range(UPDATES)]
    until(lambda: sorted(set(seen)) == expected, SECONDS_TO_RECOVER)
    stop.set()
    watcher.join()
    stored = sorted(platform.updates(counted), key=lambda each: int(each["lastUpdate"]))

    assert killed
    first_seen = list(dict.fromkeys(seen))
    assert first_seen == expected, "each comes first in its order"
    values = [{n: c["current-value"] for n, c in each["channels"].items()} for each in stored]
    assert [each["lastUpdate"] for each in stored] == expected
    assert [(each["count"], each["v"]) for each in values] == [
        (number + 1, number) for number in range(UPDATES)
    ]
    by = [each["by"] for each in values]
    assert by == sorted(by)
    assert (by[0], by[-1]) == (1, 2)


@pytest.mark.parametrize("victim", ["api", "workers"])
def test_a_version_stays_in_force_until_the_next_is_ready_whoever_is_killed(
    victim: str, platform: RunningPlatform, tmp_path: Path
) -> None:
    """The API, which waits for that, or the node manager, which begins it."""
    name = f"slow-{victim}"
    push(platform, tmp_path / "one", 1, name)
    device = platform.create({"streams": {"data": {"channels": {"v": {"type": "number"}}}}})
    composite = platform.create(a_document(device, 1, name))
    counted, path = StreamRef(composite, "counted"), f"/{composite}"

    def by(number: int) -> list[float]:
        """Which version has computed each update, after one more."""
        platform.put(StreamRef(device, "data"), BEGIN + number, v=float(number))
        until(lambda: len(platform.updates(counted)) == number, SECONDS_TO_RECOVER)
        found = sorted(platform.updates(counted), key=lambda each: int(each["lastUpdate"]))
        assert [each["channels"]["count"]["current-value"] for each in found] == [
            *range(1, number + 1)
        ]
        return [each["channels"]["by"]["current-value"] for each in found]

    assert by(1) == [1]
    push(platform, tmp_path / "two", 2, name, SLOW)
    before, answered = set(programs_of(platform)), list[int]()

    def change() -> int:
        return platform.request("PUT", path, a_document(device, 2, name))[0]

    def ask() -> None:
        try:
            answered.append(change())
        except (OSError, Unavailable):
            answered.append(0)

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: bool(set(programs_of(platform)) - before), SECONDS_TO_RECOVER)
    pids = platform.pids()
    kill([pids["api"]] if victim == "api" else pipeline_workers(pids["pipeline"]))
    asking.join()
    if answered != [200]:
        assert by(2) == [1, 1]
    until(lambda: change() == 200, SECONDS_TO_RECOVER)
    found = by(3 if answered != [200] else 2)

    assert found == sorted(found) and found[-1] == 2
