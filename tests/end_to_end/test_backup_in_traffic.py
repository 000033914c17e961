"""A platform is backed up while devices send, lost, and restored on another folder.

Whatever was acknowledged before the back-up began is there, with all that follows from it, each
value once; tokens, documents and grants are good, and subscriptions go on where they were.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flaky_receiver import FlakyReceiver
from readers_of_others import Readers
from running_platform import (
    SECONDS_TO_RECOVER,
    CommandFailedError,
    RunningPlatform,
    until,
)

from servioticy.client.rest import Rest
from servioticy.domain.model import StreamRef
from servioticy.errors import Unavailable

DEVICE = {"streams": {"data": {"channels": {"v": {"type": "number"}}}}}
VALUE = '.channels.v["current-value"]'
READERS = 8
"""Tenants that read a public stream."""
SECONDS_BEFORE = 2.0
SECONDS_AWAY = 1.0


def derived(device: str) -> dict[str, Any]:
    """A filter, what follows from it, and one that remembers."""

    def stream(code: str) -> dict[str, Any]:
        return {"channels": {"v": {"type": "number", "current-value": code}}}

    return {
        "version": "0.2.0",
        "groups": {"raw": {"soIds": [device], "stream": "data"}},
        "streams": {
            "odd": stream(f"function(raw){{return raw{VALUE}%2?raw{VALUE}:null}}"),
            "next": stream(f"function(odd){{return odd{VALUE}+1}}"),
            "sum": stream(f"function(raw,sum){{return (sum===null?0:sum{VALUE})+raw{VALUE}}}"),
        },
    }


class Device:
    """Sends one update after the other, as fast as they are accepted."""

    def __init__(self, platform: RunningPlatform, id_: str) -> None:
        self._platform, self._path = platform, f"/{id_}/streams/data"
        self.accepted: list[int] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send)

    def __enter__(self) -> Device:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _send(self) -> None:
        at = 0
        while not self._stopped.is_set():
            at += 1
            update = {"channels": {"v": {"current-value": at}}, "lastUpdate": at}
            try:
                status, _, _ = self._platform.request("PUT", self._path, update)
            except Unavailable:
                continue
            if status == 202:
                self.accepted.append(at)


class Maker:
    """Makes one Service Object after the other, each with a composite stream, and uses it."""

    def __init__(self, platform: RunningPlatform) -> None:
        self._platform = platform
        self.made: list[str] = []
        self.used: list[str] = []
        """Of these, those that an update was accepted of."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._make)

    def __enter__(self) -> Maker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _make(self) -> None:
        code = f"function(data){{return data{VALUE}*2}}"
        twice = {"channels": {"v": {"type": "number", "current-value": code}}}
        document = {"version": "0.2.0", "streams": {**DEVICE["streams"], "twice": twice}}
        while not self._stopped.is_set():
            self.made.append(self._platform.create(document))
            self._platform.put(StreamRef(self.made[-1], "data"), 1, v=1)
            self.used.append(self.made[-1])


class Lost:
    """A platform on which tenants read a stream of another one, backed up in traffic, and gone."""

    def __init__(self, folder: Path, receiver: FlakyReceiver) -> None:
        self.file = folder / "platform.backup"
        self.platform = RunningPlatform(folder / "first")
        self.token = self.platform.token
        self.devices = [self.platform.create(DEVICE) for _ in range(3)]
        self.composites = [self.platform.create(derived(each)) for each in self.devices]
        for each in self.composites:
            where = f"http://127.0.0.1:{receiver.port}/{each}"
            self._subscribe(each, "next", {"callback": "http", "destination": where})
        self.pulled = self._subscribe(self.composites[0], "odd", {"callback": "pull"})
        self.other = self.platform.command("tenant", "create", "others").stdout.strip()
        whom = self._get("/grants", self.other)["tenant"]
        self._post(f"/{self.devices[0]}/streams/data/grants", {"tenant": whom, "use": "read"})
        self.readers = Readers(self.platform, READERS)
        self.reader_partitions = self.readers.partitions()
        with contextlib.ExitStack() as sending:
            self.public = sending.enter_context(Device(self.platform, self.readers.device))
            self.senders = [
                sending.enter_context(Device(self.platform, each)) for each in self.devices
            ]
            maker = sending.enter_context(Maker(self.platform))
            time.sleep(SECONDS_BEFORE)
            receiver.is_away = True
            time.sleep(SECONDS_AWAY)
            self.before = [list(each.accepted) for each in self.senders]
            self.public_before = list(self.public.accepted)
            self.made_before, self.used_before = list(maker.made), list(maker.used)
            self.said = self.platform.command("backup", str(self.file)).stdout
            self.after = [len(each.accepted) for each in self.senders]
            time.sleep(SECONDS_AWAY)
        self.made = maker.made
        self.documents = {id_: self._get(f"/{id_}") for id_ in self.ids}
        # Its programs are killed with it.
        self.platform.process.kill()
        self.platform.process.wait()

    @property
    def ids(self) -> list[str]:
        return [*self.devices, *self.composites]

    def _get(self, path: str, token: str | None = None) -> Any:
        return json.loads(self.platform.request("GET", path, token=token)[2])

    def _post(self, path: str, body: Any) -> Any:
        status, _, answer = self.platform.request("POST", path, body)
        assert status == 201, answer
        return json.loads(answer)

    def _subscribe(self, id_: str, stream: str, wanted: dict[str, str]) -> str:
        return str(self._post(f"/{id_}/streams/{stream}/subscriptions", wanted)["id"])


@pytest.fixture(scope="module")
def receiver() -> Iterator[FlakyReceiver]:
    with FlakyReceiver() as found:
        yield found


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory, receiver: FlakyReceiver) -> Lost:
    return Lost(tmp_path_factory.mktemp("lost"), receiver)


@pytest.fixture(scope="module")
def restored(
    lost: Lost, tmp_path_factory: pytest.TempPathFactory, receiver: FlakyReceiver
) -> Iterator[RunningPlatform]:
    """The same one on another folder, with the tokens that it had."""
    folder = tmp_path_factory.mktemp("restored")
    platform = RunningPlatform(folder / "second", back_up=lost.file)
    platform.token = lost.token
    receiver.is_away = False
    yield platform
    platform.stop()


def series(platform: RunningPlatform, id_: str, stream: str) -> list[tuple[int, int]]:
    """Timestamp and value of all that is stored."""
    return [
        (each["lastUpdate"], each["channels"]["v"]["current-value"])
        for each in platform.updates(StreamRef(id_, stream))
    ]


def test_the_platform_took_updates_while_it_was_backed_up(lost: Lost) -> None:
    """Else the rest of this file tells little."""
    assert all(len(each) > 10 for each in lost.before)
    assert all(after > len(before) for after, before in zip(lost.after, lost.before, strict=True))
    assert f"tenants{2 + READERS:>34}" in lost.said
    assert lost.reader_partitions == {0, 1}
    assert len(lost.public.accepted) > len(lost.public_before) > 10
    assert "not in it: what is accepted from now on" in lost.said
    assert lost.file.stat().st_mode & 0o777 == 0o600


def test_what_was_acknowledged_before_is_there_with_all_that_follows(
    lost: Lost, restored: RunningPlatform
) -> None:
    """Nothing was sent that is not acknowledged, so what is there is the beginning of it."""
    assert "restored as of" in restored.restored
    for device, composite, before, sender in zip(
        lost.devices, lost.composites, lost.before, lost.senders, strict=True
    ):
        raw = series(restored, device, "data")
        assert set(before) <= {at for at, _ in raw}
        assert [at for at, _ in raw] == sender.accepted[: len(raw)]
        odd = [(at, value) for at, value in raw if value % 2]
        assert series(restored, composite, "odd") == odd
        assert series(restored, composite, "next") == [(at, value + 1) for at, value in odd]
        sums = list(itertools.accumulate(value for _, value in raw))
        assert [value for _, value in series(restored, composite, "sum")] == sums
        path = f"/{composite}/streams/sum/status"
        told = json.loads(restored.request("GET", path)[2])
        counts = {each["verdict"]: each["count"] for each in told["verdicts"]}
        assert counts == {"emitted": len(raw)}


def test_readers_of_a_public_stream_have_every_value_once(
    lost: Lost, restored: RunningPlatform
) -> None:
    """In both partitions; and what is sent from now on comes behind it."""
    raw = [at for at, _ in series(restored, lost.readers.device, "data")]
    assert set(lost.public_before) <= set(raw)
    assert raw == lost.public.accepted[: len(raw)]
    lost.readers.assert_all_have(restored, raw)

    for at in (10**9 + 1, 10**9 + 2):
        restored.put(StreamRef(lost.readers.device, "data"), at, v=at)
    lost.readers.assert_all_have(restored, [*raw, 10**9 + 1, 10**9 + 2])


def test_what_is_made_while_it_is_backed_up_is_there_as_a_whole_or_not(
    lost: Lost, restored: RunningPlatform
) -> None:
    """What is there is in force: what is sent to it is computed."""
    assert len(lost.made) > len(lost.made_before) > 3
    there = [id_ for id_ in lost.made if restored.request("GET", f"/{id_}")[0] == 200]
    assert there == lost.made[: len(there)]
    assert len(there) >= len(lost.made_before)
    for id_ in lost.used_before:
        assert series(restored, id_, "twice") == [(1, 2)]
    for id_ in there:
        restored.put(StreamRef(id_, "data"), 2, v=2)
    for id_ in there:
        assert series(restored, id_, "twice")[-1] == (2, 4)


def test_documents_tokens_and_grants_are_as_they_were(
    lost: Lost, restored: RunningPlatform
) -> None:
    for id_, document in lost.documents.items():
        assert json.loads(restored.request("GET", f"/{id_}")[2]) == document
    path = f"/{lost.devices[0]}/streams/data/lastUpdate"
    assert restored.request("GET", path, token=lost.other)[0] == 200
    other = f"/{lost.devices[1]}/streams/data/lastUpdate"
    assert restored.request("GET", other, token=lost.other)[0] in (401, 403, 404)
    assert restored.request("GET", path, token="nobody's")[0] in (401, 403)


def test_subscriptions_go_on(
    lost: Lost, restored: RunningPlatform, receiver: FlakyReceiver
) -> None:
    """What their receiver took before it was away, and all that came since: nothing is missing."""
    for composite in lost.composites:
        wanted = {at for at, _ in series(restored, composite, "next")}

        def complete(path: str = f"/{composite}", all_: set[int] = wanted) -> bool:
            return all_ <= set(receiver.first_times(path))

        until(complete, SECONDS_TO_RECOVER)
    odd = [at for at, _ in series(restored, lost.composites[0], "odd")]
    assert pulled(restored, lost.pulled, len(odd)) == odd


def pulled(platform: RunningPlatform, id_: str, count: int) -> list[int]:
    """What a `pull` subscription gives, each once."""
    url = f"http://127.0.0.1:{platform.live_port}"
    found: dict[int, None] = {}
    cursor = ""
    with Rest(url, platform.token, 60.0) as live:
        while len(found) < count:
            path = f"/subscriptions/{id_}/updates?wait=30&limit=1000{cursor}"
            answer = json.loads(live.request("GET", path).body)
            assert answer["updates"], (len(found), count)
            found |= dict.fromkeys(each["update"]["lastUpdate"] for each in answer["updates"])
            cursor = f"&cursor={answer['cursor']}"
    return list(found)


def test_it_goes_on_as_a_platform(
    lost: Lost, restored: RunningPlatform, receiver: FlakyReceiver
) -> None:
    """What is sent from now on is computed with what was there, and delivered."""
    device, composite = lost.devices[1], lost.composites[1]
    (*_, (_, before)) = series(restored, composite, "sum")
    restored.put(StreamRef(device, "data"), 10**9 + 1, v=10**9 + 1)
    (*_, (at, total)) = series(restored, composite, "sum")
    assert (at, total) == (10**9 + 1, before + 10**9 + 1)
    until(lambda: 10**9 + 1 in receiver.first_times(f"/{composite}"), SECONDS_TO_RECOVER)

    new = restored.create({**DEVICE, "name": "new"})
    restored.put(StreamRef(new, "data"), 1, v=1)
    assert series(restored, new, "data") == [(1, 1)]
    document = {**derived(device), "name": "both"}
    document["groups"]["raw"]["soIds"] = [device, new]
    joined = restored.create(document)
    restored.put(StreamRef(new, "data"), 10**9 + 3, v=3)
    assert series(restored, joined, "odd") == [(10**9 + 3, 3)]


def test_it_is_not_restored_over_what_runs_or_has_been_used(
    lost: Lost, restored: RunningPlatform
) -> None:
    with pytest.raises(CommandFailedError, match="a platform runs on"):
        restored.command("restore", str(lost.file))
    with pytest.raises(CommandFailedError, match="is there already"):
        restored.command("backup", str(lost.file))


def test_a_restored_platform_that_is_stopped_is_backed_up_once_more(
    lost: Lost, restored: RunningPlatform, tmp_path: Path
) -> None:
    """With its servers started for the moment, and all that has come since."""
    stored = sum(len(series(restored, id_, "data")) for id_ in lost.devices)
    restored.stop()

    said = restored.command("backup", str(tmp_path / "again")).stdout

    counts = dict(re.findall(r"^  (\S.*?)  +([\d,]+)$", said, re.MULTILINE))
    assert counts["tenants"] == str(2 + READERS)
    assert int(counts["updates"].replace(",", "")) > 2 * stored
    assert counts["accepted, not yet stored"] == "0"
