"""How soon values flow again after a program was killed, and where the time goes.

Devices send at a steady rate, each over a connection of its own, and each has one composite that
is watched over a WebSocket. A program gets SIGKILL. It is over with the first derived value whose
PUT was begun after that: from outside nobody can tell more. What the supervisor and the programs
note meanwhile says where the time went.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from benchmarks import ground, processes
from benchmarks.border.watcher import Watcher
from benchmarks.connection import Connection, NoAnswer
from command.platform import Platform
from servioticy.domain.model import StreamRef
from servioticy.settings import Settings
from servioticy.supervisor.program import Event
from servioticy.supervisor.supervisor import HEALTHY_SECONDS

PROGRAMS = ("pipeline", "kafka", "postgres")
WORKER = "worker"
"""Spark's Python that computes a partition: its task is begun again at the first offset of Spark's
batch, which may be `batch_seconds` old."""
_FORKED = "-m pipeline.spark.daemon"
DEVICES = 25
AGAIN_SECONDS = 0.05
"""Between two PUTs of an update that was not accepted."""
BACK_SECONDS = 60.0


def run(settings: Settings, arguments: Sequence[str]) -> int:
    """Print seconds until values flow again, by program; 1 where an accepted value is lost."""
    parser = argparse.ArgumentParser("servioticy bench back")
    parser.add_argument("--rate", type=float, default=50.0, help="updates a second, in all")
    parser.add_argument("--times", type=int, default=3, help="each program is killed")
    parser.add_argument("--only", nargs="+", default=PROGRAMS, help="the programs to kill")
    parser.add_argument(
        "--after", type=float, default=0.0, help="seconds that a program has run before, at least"
    )
    parser.add_argument("--steps", action="store_true", help="tell what is noted meanwhile, too")
    options = parser.parse_args(arguments)
    with ground.folder(settings) as own:
        bench = _Bench(own, options.rate, options.steps, options.after)
        return bench.run([name for _ in range(options.times) for name in options.only])


class _Device:
    """Sends in a thread of its own, again and again until the answer is 202."""

    def __init__(self, settings: Settings, token: str, id_: str, pause: float) -> None:
        self.id_ = id_
        self.sent: dict[int, float] = {}
        """By timestamp, when its first PUT was begun."""
        self.accepted: set[int] = set()
        self.stopped = threading.Event()
        self._pause = pause
        self._connection = Connection(settings, token)
        self.thread = threading.Thread(target=self._send, daemon=True)

    def _send(self) -> None:
        number, due = 0, time.perf_counter()
        while not self.stopped.is_set():
            number += 1
            self.sent[number] = time.perf_counter()
            while not self.stopped.is_set() and not self._is_taken(number):
                self.stopped.wait(AGAIN_SECONDS)
            due = max(due + self._pause, time.perf_counter() - self._pause)
            self.stopped.wait(max(0.0, due - time.perf_counter()))

    def _is_taken(self, number: int) -> bool:
        try:
            self._connection.put(self.id_, "s0", number, number)
        except (*NoAnswer, RuntimeError):
            return False
        self.accepted.add(number)
        return True


class _Watched(NamedTuple):
    """A device and who watches what is derived from it."""

    device: _Device
    watcher: Watcher

    def back_after(self, killed: float) -> float | None:
        """Return how long after that something came out that was sent later; None: nothing."""
        arrived, sent = dict(self.watcher.arrived), dict(self.device.sent)
        later = [at for number, at in arrived.items() if sent.get(number, 0.0) > killed]
        return min(later) - killed if later else None

    def missing(self) -> set[int]:
        """Return what was accepted and has not come."""
        return self.device.accepted - set(self.watcher.arrived)


class _Bench:
    """A platform, who sends to it, and what is noted of it."""

    def __init__(self, settings: Settings, rate: float, steps: bool, after: float) -> None:
        self._steps = steps
        self._after = max(after, HEALTHY_SECONDS + 1)
        self._pause = DEVICES / rate
        self._events: list[tuple[float, str]] = []
        self._platform = Platform(settings, self._note)
        self._found: dict[str, list[float]] = {}
        self._lost = 0

    def run(self, programs: Sequence[str]) -> int:
        """Kill these, one after the other; the exit code."""
        supervisor = self._platform.supervisor
        try:
            supervisor.start()
            killer = threading.Thread(target=self._kill_all, args=(programs,), daemon=True)
            killer.start()
            supervisor.run_forever(lambda: not killer.is_alive())
        finally:
            self._platform.close()
        for name, values in self._found.items():
            each = ", ".join(f"{value:.1f}" for value in values)
            print(f"{name}: median {statistics.median(values):.1f} s ({each})")
        print(f"accepted and lost: {self._lost}")
        return int(self._lost > 0 or sum(map(len, self._found.values())) < len(programs))

    def _kill_all(self, programs: Sequence[str]) -> None:
        settings = self._platform.settings
        token = ground.token(settings)
        with ground.client(settings, token) as client:
            ids = [client.create(ground.chain(1)) for _ in range(DEVICES)]
        with ExitStack() as stack:
            watched = []
            for id_ in ids:
                watcher = stack.enter_context(Watcher.of(settings, token, StreamRef(id_, "s1")))
                watched.append(_Watched(_Device(settings, token, id_, self._pause), watcher))
            for each in watched:
                each.device.thread.start()
            for program in programs:
                self._wait_until_healthy(program)
                self._kill(program, watched)
            self._lost = self._end(watched)

    def _wait_until_healthy(self, program: str) -> None:
        """Else the supervisor holds it for one that cannot live, and waits before it starts it."""
        of = "pipeline" if program == WORKER else program
        while time.time() - self._platform.supervisor.since()[of] < self._after:
            time.sleep(0.1)

    def _kill(self, program: str, watched: Sequence[_Watched]) -> None:
        if not (victims := self._processes(program)):  # to find them takes a while
            raise RuntimeError(f"{program}: there is no such process to kill")
        self._events.clear()
        clock = time.time()
        for each in victims:
            os.kill(each, signal.SIGKILL)
        killed = time.perf_counter()  # what is sent from here on meets nobody who works
        back = _first(watched, killed)
        if back is None:
            print(f"{program}: nothing comes after {BACK_SECONDS:g} s", flush=True)
            return
        self._found.setdefault(program, []).append(back)
        load, sent = os.getloadavg()[0], sum(len(each.device.accepted) for each in watched)
        about = f"load {load:.1f}, {sent:,} updates so far"
        print(f"{program}: values flow after {back:.2f} s ({about})", flush=True)
        if self._steps:
            self._tell(clock, clock + back)

    def _processes(self, program: str) -> list[int]:
        pids = self._platform.supervisor.pids()
        if program != WORKER:
            return [pids[program]]
        found = [
            each
            for each in processes.tree(pids["pipeline"])
            if _FORKED in " ".join(processes.command(each))
        ]
        return [each for each in found if not set(processes.tree(each)[1:]) & set(found)]

    def _end(self, watched: Sequence[_Watched]) -> int:
        """Stop sending; how many updates that were accepted have not come."""
        for each in watched:
            each.device.stopped.set()
        for each in watched:
            each.device.thread.join()
        deadline = time.monotonic() + BACK_SECONDS
        while (lost := sum(len(each.missing()) for each in watched)) and (
            time.monotonic() < deadline
        ):
            time.sleep(0.1)
        return lost

    def _note(self, event: Event) -> None:
        self._events.append((time.time(), f"supervisor: {event.program} {event.kind}"))

    def _tell(self, killed: float, until: float) -> None:
        logs = (self._platform.settings.data_path / "logs").glob("*.log")
        noted = [*self._events, *(each for log in logs for each in _noted(log))]
        told: set[str] = set()
        for at, what in sorted(each for each in noted if killed <= each[0] <= until):
            if what not in told:
                print(f"  {at - killed:6.2f} {what}")
            told.add(what)


def _first(watched: Sequence[_Watched], killed: float) -> float | None:
    """Wait for the first value that was sent after the kill; how long after it that came."""
    while time.perf_counter() < killed + BACK_SECONDS:
        found = [back for each in watched if (back := each.back_after(killed)) is not None]
        if found:
            return min(found)
        time.sleep(0.02)
    return None


def _noted(log: Path) -> list[tuple[float, str]]:
    """Return what a program has noted, and when; what is no event of ours is left out."""
    found = []
    for line in log.read_text("utf-8", errors="replace").splitlines():
        try:
            event: Any = orjson.loads(line)
            at = datetime.fromisoformat(event["at"]).timestamp()
        except (ValueError, TypeError, KeyError):
            continue
        why = f" ({event['why'].splitlines()[0]})" if event.get("why") else ""
        found.append((at, f"{log.stem}: {event['event']}{why}"))
    return found
