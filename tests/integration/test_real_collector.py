"""Traces and metrics as a real collector of OpenTelemetry understands them.

It is built of Go modules that are pinned in `tests/collector`, once: then it is kept in the cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from monitoring.model import Calls, Node, ResourceProfile, RuntimePerformance
from monitoring.publishers.otlp import OtlpPublisher
from servioticy.embedded import tcp_ports as ports
from servioticy.settings import load

SOURCES = Path(__file__).parents[1] / "collector"
BUILD_SECONDS = 90
"""What it has compiled by then is in the cache of Go: the next run goes on from there."""
CONFIGURATION = """
receivers:
  otlp:
    protocols:
      http:
        endpoint: 127.0.0.1:{port}
exporters:
  otlp_http:
    endpoint: http://127.0.0.1:{out}
    encoding: json
    compression: none
    sending_queue: {{enabled: false}}
    retry_on_failure: {{enabled: false}}
service:
  pipelines:
    traces: {{receivers: [otlp], exporters: [otlp_http]}}
    metrics: {{receivers: [otlp], exporters: [otlp_http]}}
"""
NODE = Node("hall/pipeline/4711", "a step")
TRACE, OTHER = "4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"
OUTER, INNER, FAR = "00f067aa0ba902b7", "b7ad6b7169203331", "53995c3f42cd8ad8"
AT = 1_700_000_000_123_456_789


@pytest.fixture(scope="module")
def program() -> Path:
    """Skips where it is not there and cannot be built, and says why."""
    digest = hashlib.sha256()
    for each in sorted(SOURCES.iterdir()):
        digest.update(each.read_bytes())
    target = load().embedded.jars_path.parent / f"collector-{digest.hexdigest()[:12]}"
    if target.exists():
        return target
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not Path(go).exists():
        pytest.skip("there is no Go to build a collector with")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name("collector.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Who had the lock before may have built it.
        why = "" if target.exists() else built(go, target)
    if why:
        pytest.skip(why)
    return target


def built(go: str, target: Path) -> str:
    """Build it; return why it cannot be."""
    partial = target.with_name(f".{target.name}")
    partial.unlink(missing_ok=True)  # of a build that was killed
    flags = ["-mod=readonly", "-trimpath", "-ldflags=-s -w"]
    command = [go, "build", *flags, "-o", str(partial), "."]
    try:
        done = subprocess.run(
            command, cwd=SOURCES, capture_output=True, text=True, timeout=BUILD_SECONDS
        )
        if done.returncode:
            return f"the collector cannot be built: {done.stderr.strip()[-500:]}"
        partial.replace(target)
    except subprocess.TimeoutExpired:
        return f"the collector is not built within {BUILD_SECONDS} s"
    finally:
        partial.unlink(missing_ok=True)
    return ""


class Receiver:
    """What the collector hands on."""

    def __init__(self) -> None:
        self.got: dict[str, list[Any]] = {"/v1/traces": [], "/v1/metrics": []}
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got[self.path].append(json.loads(body))
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def publisher(program: Path, receiver: Receiver, tmp_path: Path) -> Iterator[OtlpPublisher]:
    port = ports.free()
    file = tmp_path / "collector.yaml"
    file.write_text(CONFIGURATION.format(port=port, out=receiver.server.server_address[1]))
    with (tmp_path / "collector.log").open("wb") as log:
        process = subprocess.Popen(
            [str(program), "--config", f"file:{file}"], stdout=log, stderr=log
        )

    def listens() -> bool:
        assert process.poll() is None, (tmp_path / "collector.log").read_text()[-2_000:]
        with closing(socket.socket()) as asked:
            return asked.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(listens)
        yield OtlpPublisher(f"http://127.0.0.1:{port}", {})
    finally:
        process.kill()
        process.wait()


def attributes(of: Any) -> dict[str, str]:
    return {x["key"]: str(next(iter(x["value"].values()))) for x in of["attributes"]}


def test_a_trace_has_its_parents_links_and_times(
    publisher: OtlpPublisher, receiver: Receiver
) -> None:
    """To the nanosecond: the collector has read it as what it is, and says it in its own words."""
    links = (f"{OTHER}-{FAR}",)
    outer = RuntimePerformance(NODE, "f", AT, AT + 5, TRACE, step=OUTER)
    inner = RuntimePerformance(
        NODE, "g", AT + 1, AT + 3, TRACE, error="ValueError", step=INNER, parent=OUTER, links=links
    )

    assert publisher.publish([outer, inner]) == 0
    ((told,),) = [each["resourceSpans"] for each in receiver.got["/v1/traces"]]
    spans = {each["spanId"]: each for scope in told["scopeSpans"] for each in scope["spans"]}
    assert attributes(told["resource"])["service.name"] == "servioticy-pipeline"
    assert attributes(told["resource"])["process.pid"] == "4711"
    assert {each["traceId"] for each in spans.values()} == {TRACE}
    assert {own: each.get("parentSpanId", "") for own, each in spans.items()} == {
        OUTER: "",
        INNER: OUTER,
    }
    assert [
        (int(spans[each]["startTimeUnixNano"]), int(spans[each]["endTimeUnixNano"]))
        for each in (OUTER, INNER)
    ] == [(AT, AT + 5), (AT + 1, AT + 3)]
    ((link,), status) = spans[INNER]["links"], spans[INNER]["status"]
    assert (link["traceId"], link["spanId"]) == (OTHER, FAR)
    assert (status["code"], status["message"]) == (2, "ValueError")
    assert attributes(spans[INNER])["code.function.name"] == "g"


def test_counts_and_profiles_are_sums_since_the_last_time(
    publisher: OtlpPublisher, receiver: Receiver
) -> None:
    profile = ResourceProfile(NODE, "f", AT, AT + 5, TRACE, 700, -4_096, 2)

    assert publisher.publish([Calls(NODE, "f", AT, 12, 3), profile]) == 0
    ((told,),) = [each["resourceMetrics"] for each in receiver.got["/v1/metrics"]]
    metrics = {x["name"]: x for scope in told["scopeMetrics"] for x in scope["metrics"]}
    values = {
        name.removeprefix("servioticy.step."): int(each["sum"]["dataPoints"][0]["asInt"])
        for name, each in metrics.items()
    }
    assert values == {
        "calls": 12,
        "failed": 3,
        "processor": 700,
        "memory": -4_096,
        "collections": 2,
    }
    assert {each["sum"]["aggregationTemporality"] for each in metrics.values()} == {1}
    assert not metrics["servioticy.step.memory"]["sum"].get("isMonotonic", False)
