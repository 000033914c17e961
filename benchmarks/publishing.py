"""How many measurements each publisher holds, and how long it takes to weave."""

from __future__ import annotations

import http.server
import logging
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from monitoring.applications.handler import Handler
from monitoring.configuration import Aspect, Publish
from monitoring.model import Measurement, Node, RuntimePerformance
from monitoring.outbox import Outbox
from monitoring.publishers.every import MADE, Every, Surroundings
from monitoring.publishers.sums import Sums
from monitoring.weaving.weaver import Weaver
from servioticy.settings import Settings

AT_ONCE = 1_000
ALONE = ("file", "pipe", "log", "metrics", "own", "otlp")
"""Those that need no platform."""
OWN = "def publish(measurements):\n    return None\n"


def weaving(steps: Sequence[str], rounds: int = 20) -> None:
    """Print the processor time to weave functions, and to unweave them again."""
    weaver, outbox = Weaver("bench"), Outbox()
    aspects = [Aspect(each) for each in steps]
    woven = unwoven = functions = 0.0
    for _ in range(rounds):
        began = time.process_time()
        functions = sum(each.woven for each in weaver.weave(aspects, outbox))
        between = time.process_time()
        weaver.unweave()
        woven += between - began
        unwoven += time.process_time() - between
    each = 1e6 / rounds / max(1.0, functions)
    print(
        f"to weave {functions:.0f} functions: {each * woven:.0f} us of the processor each, "
        f"to unweave one {each * unwoven:.1f} us"
    )


def publishing(settings: Settings, count: int) -> None:
    """Print how many measurements a second of the processor each publisher holds.

    Of Kafka and Postgres where the settings name a platform. Whoever receives them is a process
    apart there; the rest is taken in by threads of this one, which is counted.
    """
    names = [
        *ALONE,
        *(["kafka"] if settings.log.bootstrap_servers else []),
        *(["postgres"] if settings.store.dsn else []),
    ]
    node = Node("bench/publishing/1", "a step")
    some: list[Measurement] = [
        RuntimePerformance(node, "bench.step", n, n + 5, f"{n:032x}", step=f"{n:016x}")
        for n in range(AT_ONCE)
    ]
    for name in names:
        with TemporaryDirectory() as folder, _quiet_log():
            rounds = max(1, count // AT_ONCE)
            processor, clock = _published(name, settings, Path(folder), some, rounds)
        print(
            f"{name:9s} {rounds * AT_ONCE / processor:10,.0f} a second of the processor, "
            f"{rounds * AT_ONCE / clock:10,.0f} by the clock"
        )
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")


def _published(
    name: str, settings: Settings, folder: Path, some: Sequence[Measurement], rounds: int
) -> tuple[float, float]:
    (folder / "own.py").write_text(OWN, encoding="utf-8")
    here = Surroundings(folder / "file.ndjson", Sums(), settings, "pipeline", folder)
    with _collector() as port, _reader(folder / "pipe"):
        chosen = Publish(
            to=(name,),  # type: ignore[arg-type]
            otlp_url=f"http://127.0.0.1:{port}",
            own="own.py",
            pipe="pipe",
            kafka_topic="bench-measurements",
        )
        publisher = MADE[name](chosen, here)
        publisher.publish(some)  # the first one connects
        began, processor = time.perf_counter(), time.process_time()
        for _ in range(rounds):
            publisher.publish(some)
        taken = time.process_time() - processor, time.perf_counter() - began
        publisher.close()
    return taken


@contextmanager
def _reader(pipe: Path) -> Iterator[None]:
    stored = Surroundings(pipe.with_name("stored.ndjson"), Sums())
    handler = Handler(pipe, Every(Publish(), stored))
    try:
        yield
    finally:
        handler.close()


class _Collector(http.server.BaseHTTPRequestHandler):
    """Takes whatever comes."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def _collector() -> Iterator[int]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def _quiet_log() -> Iterator[None]:
    """Its lines are made, and go nowhere."""
    log, handler = logging.getLogger("servioticy.monitoring"), logging.NullHandler()
    before = log.level, log.propagate
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before[0])
        log.propagate = before[1]
