"""Publishers that stand on others: bounded, tried again, and never waited for."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import woven_steps
from waiting import until

from monitoring.configuration import NotUnderstood, Publish, parsed
from monitoring.following import Following
from monitoring.model import Calls, Measurement, Node, ResourceProfile, RuntimePerformance
from monitoring.outbox import MOST_BYTES_EACH
from monitoring.publishers import beside
from monitoring.publishers.beside import Beside
from monitoring.publishers.every import Every, Surroundings
from monitoring.publishers.otlp import OtlpPublisher, Refused
from monitoring.publishers.own import OwnPublisher
from monitoring.publishers.sums import Sums
from servioticy.errors import Unavailable

NODE = Node("here/tests/4711", "first")
TRACE, OTHER, STEP = "a" * 32, "b" * 32, "c" * 16


def a_step(number: int = 0, **more: Any) -> RuntimePerformance:
    fields = {"sequence": TRACE, "step": f"{number:016x}", **more}
    return RuntimePerformance(NODE, "f", 1_000, 2_000, **fields)


class Receiver:
    """Takes measurements when it may; fails with what it is told to, each time once."""

    def __init__(self, *fails: Exception | None) -> None:
        self.got: list[Measurement] = []
        self.fails = list(fails)
        self.may = threading.Event()
        self.may.set()
        self.asked = threading.Event()
        self.closed = threading.Event()

    def publish(self, measurements: Sequence[Measurement]) -> int | None:
        self.asked.set()
        self.may.wait(60)
        error = self.fails.pop(0) if self.fails else None
        if error is not None:
            raise error
        self.got += measurements
        return None

    def close(self) -> None:
        self.closed.set()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(beside, "CLOSE_SECONDS", 60.0)


def test_who_publishes_beside_is_not_waited_for_and_drops_with_a_count() -> None:
    """A receiver that hangs holds so much and no more."""
    receiver = Receiver()
    receiver.may.clear()
    found = Beside("slow", receiver, 10 * MOST_BYTES_EACH)
    found.publish([a_step()])
    assert receiver.asked.wait(60)
    found.publish([a_step(number) for number in range(25)])
    assert found.dropped == 15
    receiver.may.set()
    found.close()

    assert receiver.closed.is_set()
    assert len(receiver.got) == 11
    assert found.dropped == 15


def test_a_receiver_that_is_away_for_a_moment_loses_nothing() -> None:
    receiver = Receiver(Unavailable("away"), Unavailable("away"))
    found = Beside("back", receiver, 1 << 20)
    found.publish([a_step(1), a_step(2)])
    until(lambda: len(receiver.got) == 2)
    found.close()

    assert found.dropped == 0


@pytest.mark.parametrize(
    "fails", [[ValueError("poison")], [Unavailable("away")] * beside.ATTEMPTS]
)
def test_what_cannot_be_published_is_counted_and_the_next_comes(
    fails: list[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    receiver = Receiver(*fails)
    found = Beside("lossy", receiver, 1 << 20)
    with caplog.at_level(logging.WARNING, "servioticy.monitoring"):
        found.publish([a_step(1), a_step(2)])
        until(lambda: found.dropped == 2)
        found.publish([a_step(3)])
        until(lambda: len(receiver.got) == 1)
    found.close()

    (told,) = caplog.records
    assert (told.message, told.__dict__["publisher"]) == ("measurements_lost", "lossy")


def test_an_ending_program_does_not_wait_for_a_receiver_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(beside, "CLOSE_SECONDS", 0.0)
    receiver = Receiver()
    receiver.may.clear()
    found = Beside("hangs", receiver, 1 << 20)
    found.publish([a_step()])
    assert receiver.asked.wait(60)
    found.close()

    assert not receiver.closed.is_set()
    receiver.may.set()
    assert receiver.closed.wait(60)


class Collector:
    """A receiver of OTLP over HTTP that keeps what it gets, and answers as it is told to."""

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], Any]] = []
        self.status, self.answer = 200, b"{}"
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((self.path, dict(self.headers), json.loads(body)))
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(outer.answer)))
                self.end_headers()
                self.wfile.write(outer.answer)

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.stop()


def test_a_runtime_is_a_span_of_its_trace(collector: Collector) -> None:
    """With its parent, links to the traces of a batch, and the error that ended it."""
    publisher = OtlpPublisher(f"{collector.url}/base/", {"X-Key": "secret"})
    steps = [
        a_step(1, parent=STEP, error="ZeroDivisionError"),
        a_step(2, sequence="4711:5", links=(f"{TRACE}-{STEP}", f"{OTHER}-{STEP}"), for_links=True),
        RuntimePerformance(NODE, "f", 1_000, None, TRACE),  # half of one is no span
    ]
    assert publisher.publish(steps) == 0
    ((path, headers, sent),) = collector.got

    assert path == "/base/v1/traces"
    assert headers["X-Key"] == "secret"
    assert headers["Content-Type"] == "application/json"
    ((resource),) = sent["resourceSpans"]
    about = {each["key"]: each["value"] for each in resource["resource"]["attributes"]}
    assert about["service.name"] == {"stringValue": "servioticy-tests"}
    assert about["process.pid"] == {"intValue": "4711"}
    one, other = resource["scopeSpans"][0]["spans"]
    assert (one["traceId"], one["spanId"], one["parentSpanId"]) == (TRACE, f"{1:016x}", STEP)
    assert (one["startTimeUnixNano"], one["endTimeUnixNano"]) == ("1000", "2000")
    assert one["status"] == {"code": 2, "message": "ZeroDivisionError"}
    assert one["name"] == "first"
    assert len(bytes.fromhex(other["traceId"])) == 16
    assert other["traceId"] not in (TRACE, OTHER)
    assert [each["traceId"] for each in other["links"]] == [TRACE, OTHER]
    assert "parentSpanId" not in other
    told = {"key": "servioticy.step.for_links", "value": {"boolValue": True}}
    assert [told in each["attributes"] for each in (one, other)] == [False, True]


def test_counts_and_profiles_are_sums(collector: Collector) -> None:
    publisher = OtlpPublisher(collector.url, {})
    publisher.publish(
        [Calls(NODE, "f", 9, 5, 1), ResourceProfile(NODE, "f", 1, 9, TRACE, 70, -80, 2)]
    )
    ((path, _, sent),) = collector.got

    assert path == "/v1/metrics"
    metrics = sent["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    values = {each["name"]: each["sum"]["dataPoints"][0]["asInt"] for each in metrics}
    assert values == {
        f"servioticy.step.{name}": value
        for name, value in (
            *(("calls", "5"), ("failed", "1")),
            *(("processor", "70"), ("memory", "-80"), ("collections", "2")),
        )
    }
    grows = {each["name"].rpartition(".")[2]: each["sum"]["isMonotonic"] for each in metrics}
    assert [name for name, each in grows.items() if not each] == ["memory"]
    assert {each["sum"]["aggregationTemporality"] for each in metrics} == {1}


@pytest.mark.parametrize(
    ("status", "answer", "comes"),
    [
        (200, b'{"partialSuccess": {"rejectedSpans": "2"}}', 2),
        (200, b'{"partialSuccess": {"rejectedSpans": "many"}}', 0),
        (200, b'{"partialSuccess": 5}', 0),
        (200, b"[" * 60_000, 0),
        (200, b"", 0),
        (503, b"{}", Unavailable),
        (429, b"{}", Unavailable),
        (400, b"{}", Refused),
        (301, b"{}", Refused),
    ],
)
def test_what_a_collector_says_is_heard(
    status: int, answer: bytes, comes: Any, collector: Collector
) -> None:
    collector.status, collector.answer = status, answer
    publisher = OtlpPublisher(collector.url, {})

    if isinstance(comes, int):
        assert publisher.publish([a_step()]) == comes
    else:
        with pytest.raises(comes):
            publisher.publish([a_step()])


def test_where_no_collector_is_it_may_come(collector: Collector) -> None:
    collector.server.server_close()

    with pytest.raises(Unavailable):
        OtlpPublisher("http://127.0.0.1:1", {}).publish([a_step()])


OWN = """
told = []
def publish(measurements):
    told.append(measurements)
    if len(told) == 1:
        raise ConnectionResetError
def close():
    told.append("closed")
"""


def own(folder: Path, text: str) -> Path:
    file = folder / "mine.py"
    file.write_text(text)
    file.chmod(0o600)
    return file


def test_a_file_of_ones_own_is_told_as_the_file_publisher_tells(tmp_path: Path) -> None:
    file = own(tmp_path, OWN)
    publisher = OwnPublisher(file)
    with pytest.raises(Unavailable):
        publisher.publish([a_step(1)])
    publisher.publish([a_step(2)])
    publisher.close()
    (again, closed) = publisher._publish.__globals__["told"][1:]

    assert again[0]["type"] == "RuntimePerformance"
    assert again[0]["node"] == {"nodeId": "here/tests/4711", "nodePurpose": "first"}
    assert closed == "closed"


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        ("def publish(measurements): pass", 0o602, "others may change it"),
        ("def published(measurements): pass", 0o600, "has no function `publish`"),
        ("publish = 5", 0o600, "has no function `publish`"),
        ("def publish(", 0o600, "SyntaxError"),
        ("1 / 0", 0o600, "ZeroDivisionError"),
        ("def publish(m): pass\n" + "#" * (1 << 20), 0o600, "more than 1048576 bytes"),
    ],
)
def test_a_file_that_publishes_nothing_is_told_of(
    text: str, mode: int, why: str, tmp_path: Path
) -> None:
    own(tmp_path, text).chmod(mode)

    with pytest.raises(NotUnderstood) as told:
        OwnPublisher(tmp_path / "mine.py")
    assert why in str(told.value)
    assert "$.publish.own" in str(told.value)


def test_a_file_that_is_not_there_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(NotUnderstood, match=r"FileNotFoundError"):
        OwnPublisher(tmp_path / "mine.py")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('to = ["own"]', "$.publish.own"),
        ('to = ["carrier pigeon"]', "$.publish.to"),
        ('otlp_url = "file:///etc/passwd"', "$.publish.otlp_url"),
        ('otlp_headers = {"a b" = "c"}', "$.publish.otlp_headers"),
        ('otlp_headers = {a = "c\\nd: e"}', "$.publish.otlp_headers"),
        ('kafka_topic = "a/b"', "$.publish.kafka_topic"),
        ("postgres_rows = 5", "$.publish.postgres_rows"),
    ],
)
def test_what_is_not_understood_is_told_with_its_place(text: str, where: str) -> None:
    with pytest.raises(NotUnderstood) as told:
        parsed(f"[publish]\n{text}\n".encode())
    assert where in str(told.value)


@pytest.mark.parametrize("topic", ["updates", "emitted", "dead-letters"])
def test_a_topic_of_the_platform_is_not_written_to(topic: str, tmp_path: Path) -> None:
    with pytest.raises(NotUnderstood, match=r"kafka_topic"):
        Every(Publish(to=("kafka",), kafka_topic=topic), Surroundings(tmp_path / "f", Sums()))


def test_a_program_publishes_by_those_that_its_file_names(
    collector: Collector, tmp_path: Path
) -> None:
    """What they lose counts as dropped; a file that names a wrong one changes nothing."""
    own(tmp_path, "def publish(measurements):\n    raise ValueError(len(measurements))\n")
    file, name = tmp_path / "aspects.toml", f"{woven_steps.__name__}.first"
    aspect = f'[[aspect]]\npointcut = "{name}"\n'
    publish = f'[publish]\nto = ["otlp", "own"]\nown = "mine.py"\notlp_url = "{collector.url}"\n'
    file.write_text(aspect + publish)
    following = Following(file, tmp_path, "tests")
    try:
        following.look()
        woven_steps.first([])
        following.look()
        until(lambda: bool(collector.got) and following.dropped == 1)
        file.write_text(f'{aspect}[publish]\nto = ["own"]\nown = "not there.py"\n')
        following.look()
        woven_steps.first([])
        following.look()
        until(lambda: len(collector.got) == 2 and following.dropped == 2)
        assert "not there.py" in following._wrong
    finally:
        following.stop()

    assert following.dropped == 2
    spans = [sent["resourceSpans"][0]["scopeSpans"][0]["spans"] for _, _, sent in collector.got]
    assert [each["name"] for some in spans for each in some] == [name, name]
