"""A tenant's own program is replaced, killed and kept by many, while updates come.

An operator in Python passes a number on and adds its version. Its document is changed to another
version of it at a steady rate of updates; each frame of the WebSocket tells which one made it.
Then its process is killed, again and again. At last each of ten tenants has five programs, at
once. Nothing may be lost, doubled or out of order. (Luthra et al., Operator as a Service, 2020: an
operator of theirs is replaced in 238 ms, in Flink it takes 8.6 s.) `--rivals` has Flink do it.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from websockets.sync.client import connect

import operators
from benchmarks import curve, ground
from benchmarks.connection import Connection
from benchmarks.rivals import measure as rival
from benchmarks.rivals.environment import FLINK, python_of
from operators import archives
from servioticy.embedded.java import find
from servioticy.errors import ServioticyError
from servioticy.settings import Settings, changed
from servioticy.settings.places import reachable
from servioticy.storage.database import Database
from servioticy.storage.tenants import PostgresTenants

SECONDS = 120.0
"""In which whatever is waited for has to come."""

BATCH_SECONDS = 0.02
"""Updates that come in this time are sent together, as by a gateway."""

BEFORE, AFTER = 1.0, 1.5
"""Seconds around a change of which the rate is told, and so long there is no other."""
INTERVAL = 0.1

TENANTS, EACH = 10, 5

FLINK_CHANGES = 5
"""It takes seconds for each."""

MAIN = """from servioticy_operator import serve
serve(lambda event, state: {{"v": event.value("v"), "by": {version}}})
"""


class Wrong(ServioticyError):
    """Something was lost, doubled, or made by the wrong version."""


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print how long replacing a program takes, a killed one is missed, and many take."""
    parser = argparse.ArgumentParser("servioticy bench versions")
    parser.add_argument("--rate", type=float, default=1000.0, help="updates a second (1,000)")
    parser.add_argument("--changes", type=int, default=20, help="of the version (20)")
    parser.add_argument("--kills", type=int, default=5, help="of its process (5)")
    parser.add_argument("--svg", type=Path, help="file for the curve around a change")
    parser.add_argument("--rivals", action="store_true", help="PyFlink, too: 500 MB, fetched once")
    options = parser.parse_args(arguments)
    flink = python_of(Path(settings.data), FLINK) if options.rivals else None
    print(f"load {os.getloadavg()[0]:.1f}")
    wanted = changed(settings, operators_protection="any", operators_places=TENANTS * EACH * 2)
    with ground.platform(wanted) as found:
        token = ground.token(found)
        around = _replaced(found, token, options.rate, options.changes)
        if options.svg is not None:
            title = f"Updates a second around another version, at {options.rate:,.0f}/s"
            options.svg.write_text(curve.drawn(around, title), encoding="utf-8")
        _killed(found, token, options.rate, options.kills)
        _many(found)
    if flink is not None:
        _replaced_in_flink(settings, flink, options.rate, min(options.changes, FLINK_CHANGES))


@dataclass
class _Traffic:
    """A device that sends at a rate, and what comes of it."""

    settings: Settings
    token: str
    id: str
    rate: float
    sent: list[float] = field(default_factory=list)
    frames: list[tuple[int, int, float]] = field(default_factory=list)
    """Number, version, and when it came."""
    stopped: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> _Traffic:
        listens = threading.Event()
        self._threads = [
            threading.Thread(target=self._listen, args=(listens,), daemon=True),
            threading.Thread(target=self._drive, daemon=True),
        ]
        self._threads[0].start()
        listens.wait(SECONDS)
        self._threads[1].start()
        _until(lambda: len(self.frames) > self.rate / 10)
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self._threads[1].join(SECONDS)
        _until(lambda: len(self.frames) >= len(self.sent))
        if [number for number, _, _ in self.frames] != list(range(len(self.sent))):
            raise Wrong(f"{len(self.sent)} sent, {len(self.frames)} came, or not in order")
        versions = [version for _, version, _ in self.frames]
        if versions != sorted(versions):
            raise Wrong("an older version computed after a newer one")

    def gaps(self, began: float, ended: float) -> float:
        """The longest time in between without an update, in seconds."""
        at = [came for _, _, came in self.frames if began <= came <= ended]
        return max([b - a for a, b in zip([began, *at], [*at, ended], strict=True)])

    def _listen(self, listens: threading.Event) -> None:
        place = f"{reachable(self.settings.host)}:{self.settings.delivery.port}"
        url = f"ws://{place}/{self.id}/streams/out/live"
        with connect(
            url, additional_headers={"Authorization": self.token}, compression=None
        ) as socket:
            listens.set()
            while not (self.stopped.is_set() and len(self.frames) >= len(self.sent)):
                try:
                    update = orjson.loads(socket.recv(timeout=1))
                except TimeoutError:
                    continue
                by = update["channels"]["by"]["current-value"]
                self.frames.append((update["lastUpdate"], by, time.perf_counter()))

    def _drive(self) -> None:
        began = time.perf_counter()
        with ground.client(self.settings, self.token) as device:
            while not self.stopped.is_set():
                first = len(self.sent)
                due = int((time.perf_counter() - began) * self.rate) - first
                numbers = range(first, first + max(0, due))
                if numbers:
                    self.sent += [time.perf_counter()] * len(numbers)
                    device.put_many(self.id, "data", [_update(each) for each in numbers])
                time.sleep(BATCH_SECONDS)


def _replaced(settings: Settings, token: str, rate: float, changes: int) -> Sequence[curve.Rate]:
    """How many updates a second came around the commands."""
    owner = Connection(settings, token)
    with ground.client(settings, token) as client:
        for version in range(1, changes + 2):
            _push(client, "forward", version)
        id_ = client.create(_document("forward", 1))
    asked: dict[int, float] = {}
    answered: dict[int, float] = {}
    with _Traffic(settings, token, id_, rate) as traffic:
        for version in range(2, changes + 2):
            time.sleep(BEFORE + AFTER)
            asked[version] = time.perf_counter()
            owner.change(id_, _document("forward", version))
            answered[version] = time.perf_counter()
            _until(lambda version=version: traffic.frames[-1][1] == version)
        time.sleep(AFTER)
    first = {version: at for _, version, at in reversed(traffic.frames)}
    last = {version: at for _, version, at in traffic.frames}
    took = [answered[version] - asked[version] for version in asked]
    effects = [max(0.0, first[version] - answered[version]) for version in asked]
    between = [first[version] - last[version - 1] for version in asked]
    ordinary = [at - traffic.sent[number] for number, _, at in traffic.frames]
    _show("the command, to its 200", took)
    _show("from the 200 to the first update by the new version", effects)
    _show("between the last of the old and the first of the new", between)
    _show("every update meanwhile, sent to WebSocket", ordinary)
    print(f"{len(ordinary)} updates at {rate:.0f}/s, each once and in order; {changes} changes")
    came = [at for _, _, at in traffic.frames]
    around = curve.rates(came, [*asked.values()], BEFORE, AFTER, INTERVAL)
    print(
        f"updates/s at the WebSocket around the {changes} commands", *curve.lines(around), sep="\n"
    )
    return around


def _replaced_in_flink(settings: Settings, python: Path, rate: float, changes: int) -> None:
    """The same there: its operator is Python's, too, and is changed by a savepoint."""
    work = {"rate": rate, "changes": changes, "between": BEFORE + AFTER}
    java = find(settings)
    told = rival.done(python, "on_flink.py", work, {"JAVA_HOME": str(java.home)})
    updates, asked = told["updates"], told["asked"]
    if [number for number, _, _ in updates] != list(range(len(updates))):
        raise Wrong("in Flink something was lost, doubled or out of order")
    first = {version: at for _, version, at in reversed(updates)}
    last = {version: at for _, version, at in updates}
    versions = range(2, changes + 2)
    effects = [first[each] - asked[each - 2] for each in versions]
    _show("PyFlink, from the command to the first update by the new version", effects)
    between = [first[each] - last[each - 1] for each in versions]
    _show("PyFlink, between the last of the old and the first of the new", between)
    print(f"{len(updates)} updates, each once and in order; {changes} changes")


def _killed(settings: Settings, token: str, rate: float, kills: int) -> None:
    with ground.client(settings, token) as client:
        _push(client, "killed", 1)
        id_ = client.create(_document("killed", 1))
    missed = []
    with _Traffic(settings, token, id_, rate) as traffic:
        for _ in range(kills):
            time.sleep(1.0)
            began = time.perf_counter()
            before = len(traffic.sent)
            for pid in _processes():
                os.kill(pid, signal.SIGKILL)
            _until(lambda before=before: traffic.frames[-1][0] > before)
            missed.append(traffic.gaps(began, time.perf_counter()))
    _show("without an update behind a kill -9 of the program", missed)
    print(f"{len(traffic.frames)} updates, each once and in order; {kills} kills")


def _many(settings: Settings) -> None:
    """Five programs for each of ten tenants, asked at once."""
    database = Database(settings.store.dsn)
    tokens = [PostgresTenants(database).create_tenant(f"bench-{n}") for n in range(TENANTS)]
    database.close()
    objects: list[tuple[Any, str]] = []
    for token in tokens:
        client = ground.client(settings, token)
        for number in range(EACH):
            _push(client, f"many-{number}", 1)
            objects.append((client, client.create(_document(f"many-{number}", 1))))
    for title, at in (("from nothing to an answer", 0), ("again, all that run", 1)):
        began = time.perf_counter()
        for client, id_ in objects:
            client.put(id_, "data", _update(at))
        took: list[float] = []
        waiting = list(objects)
        while waiting and time.perf_counter() - began < SECONDS:
            for client, id_ in list(waiting):
                if client.last_timestamp(id_, "out") == at:
                    took.append(time.perf_counter() - began)
                    waiting.remove((client, id_))
        if waiting:
            raise Wrong(f"{len(waiting)} of {len(objects)} programs have not answered")
        _show(f"{len(objects)} programs of {TENANTS} tenants, {title}", took)
    for client, _ in objects:
        client.close()


def _push(client: Any, name: str, version: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        kit = Path(operators.__path__[0]) / "kits/python/servioticy_operator.py"
        (folder / kit.name).write_bytes(kit.read_bytes())
        (folder / "main.py").write_text(MAIN.format(version=version))
        said = {"name": name, "language": "python", "command": ["python3", "main.py"]}
        (folder / "operator.json").write_bytes(orjson.dumps(said))
        pushed = client.push_operator(name, archives.pack(folder))
    if pushed["version"] != version:
        raise Wrong(f"{name} has become version {pushed['version']}, not {version}")


def _document(name: str, version: int) -> dict[str, Any]:
    channel = {"type": "number"}
    operator = {"name": name, "version": version}
    computed = {"operator": operator, "channels": {"v": channel, "by": channel}}
    return {
        "name": name,
        "version": "0.2.0",
        "streams": {"data": {"channels": {"v": channel}}, "out": computed},
    }


def _update(number: int) -> dict[str, Any]:
    return {"channels": {"v": {"current-value": number}}, "lastUpdate": number}


def _processes() -> list[int]:
    """The processes of operators below this one."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            command = (place / "cmdline").read_bytes().split(b"\0")
            if b"main.py" in command[-2:] and _is_below(int(place.name)):
                found.append(int(place.name))
        except OSError:
            continue
    return found


def _is_below(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return False


def _until(is_so: Any) -> None:
    until = time.perf_counter() + SECONDS
    while not is_so():
        if time.perf_counter() > until:
            raise Wrong(f"it has not come within {SECONDS:.0f} s")
        time.sleep(0.001)


def _show(what: str, seconds: Sequence[float]) -> None:
    p50, p99 = (ground.percentile(seconds, part) * 1000 for part in (0.5, 0.99))
    print(f"{what}: p50 {p50:.1f} p99 {p99:.1f} max {max(seconds) * 1000:.1f} ms", flush=True)
