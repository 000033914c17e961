"""Measurements for OpenTelemetry: OTLP 1.x as JSON over HTTP, to a collector.

A runtime is a span, what is counted and profiled are sums. Sequences that are no trace of W3C get
an id that is made of theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

import msgspec

from monitoring.model import Calls, Measurement, Node, ResourceProfile, RuntimePerformance
from monitoring.sequences import TRACE_LENGTH
from servioticy.errors import ServioticyError, Unavailable

SECONDS = 10.0
MAX_ANSWER_BYTES = 65_536
AGAIN = frozenset({429, 502, 503, 504})
"""What the protocol says to send once more."""
DELTA = 1
"""Sums count since the last time they were told."""
_HEXADECIMAL = frozenset("0123456789abcdef")


class Refused(ServioticyError):
    """The collector does not want it, and never will; the message says why."""


class OtlpPublisher:
    """Posts to the collector's addresses for traces and metrics; follows no redirect."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = urlsplit(url)
        self._headers = {**headers, "Content-Type": "application/json"}
        self._encoder = msgspec.json.Encoder()

    def publish(self, measurements: Sequence[Measurement]) -> int:
        """Post them; return how many were refused. Raises Unavailable, Refused."""
        whole = [
            each
            for each in measurements
            if isinstance(each, RuntimePerformance) and None not in (each.start, each.end)
        ]
        sums = [each for each in measurements if isinstance(each, Calls | ResourceProfile)]
        refused = 0
        if whole:
            spans = _by_node(whole, "scopeSpans", lambda some: {"spans": [*map(_span, some)]})
            answer = self._post("/v1/traces", {"resourceSpans": spans})
            refused += _rejected(answer, "rejectedSpans")
        if sums:
            metrics = _by_node(sums, "scopeMetrics", lambda some: {"metrics": _metrics(some)})
            answer = self._post("/v1/metrics", {"resourceMetrics": metrics})
            # Of data points, of which a measurement may have several.
            refused += min(len(sums), _rejected(answer, "rejectedDataPoints"))
        return refused

    def close(self) -> None:
        """Nothing is kept open."""

    def _post(self, path: str, content: Any) -> Any:
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=SECONDS)
        try:
            body = self._encoder.encode(content)
            connection.request("POST", self._url.path.rstrip("/") + path, body, self._headers)
            return _answered(connection.getresponse())
        except (OSError, HTTPException) as error:
            raise Unavailable(f"the collector does not answer: {error!r}") from error
        finally:
            connection.close()


def _answered(response: HTTPResponse) -> Any:
    text = response.read(MAX_ANSWER_BYTES)
    if response.status in AGAIN:
        raise Unavailable(f"the collector says {response.status}")
    if not 200 <= response.status < 300:
        raise Refused(f"the collector says {response.status}: {text[:200]!r}")
    try:
        return json.loads(text or b"{}")
    except (ValueError, RecursionError):
        return {}


def _rejected(answer: Any, name: str) -> int:
    """How many the collector has not taken, which it says in a success."""
    partly = answer.get("partialSuccess") if isinstance(answer, dict) else None
    found = partly.get(name) if isinstance(partly, dict) else None
    try:
        return max(0, int(found or 0))
    except (TypeError, ValueError):
        return 0


def _by_node(measurements: Iterable[Any], scope: str, told: Any) -> list[Any]:
    """Return them by the process that they are of: its attributes stand once."""
    nodes: dict[str, list[Any]] = {}
    for each in measurements:
        nodes.setdefault(each.node.node_id, []).append(each)
    return [
        {
            "resource": {"attributes": _attributes(_process(node))},
            scope: [{"scope": {"name": "servioticy.monitoring"}, **told(some)}],
        }
        for node, some in nodes.items()
    ]


def _process(node_id: str) -> dict[str, Any]:
    host, _, rest = node_id.partition("/")
    program, _, pid = rest.partition("/")
    found: dict[str, Any] = {
        "service.name": f"servioticy-{program or 'program'}",
        "service.instance.id": node_id,
        "host.name": host,
    }
    return found | ({"process.pid": int(pid)} if pid.isdecimal() else {})


def _attributes(values: Mapping[str, Any]) -> list[Any]:
    return [
        {"key": key, "value": {"intValue": str(value)}}
        if isinstance(value, int)
        else {"key": key, "value": {"stringValue": value}}
        for key, value in values.items()
    ]


def _span(step: RuntimePerformance) -> Any:
    told: dict[str, Any] = {
        "traceId": _trace(step.node, step.sequence),
        "spanId": step.step,
        "name": step.node.node_purpose,
        "kind": 1,
        "startTimeUnixNano": str(step.start),
        "endTimeUnixNano": str(step.end),
        "attributes": _attributes({"code.function.name": step.place}),
    }
    if step.parent:
        told["parentSpanId"] = step.parent
    if step.links:
        pairs = [each.split("-") for each in step.links]
        told["links"] = [{"traceId": trace, "spanId": span} for trace, span in pairs]
    if step.for_links:
        told["attributes"].append(
            {"key": "servioticy.step.for_links", "value": {"boolValue": True}}
        )
    if step.error:
        told["status"] = {"code": 2, "message": step.error}
    return told


def _trace(node: Node, sequence: str) -> str:
    if len(sequence) == TRACE_LENGTH and set(sequence) <= _HEXADECIMAL:
        return sequence
    return blake2b(f"{node.node_id} {sequence}".encode(), digest_size=16).hexdigest()


def _metrics(measurements: Iterable[Calls | ResourceProfile]) -> list[Any]:
    points: dict[tuple[str, str, bool], list[Any]] = {}
    for each in measurements:
        about = {"purpose": each.node.node_purpose, "code.function.name": each.place}
        at = {"attributes": _attributes(about), "timeUnixNano": str(each.end)}
        if isinstance(each, ResourceProfile):
            at["startTimeUnixNano"] = str(each.start)
        for name, unit, value, grows in _sums(each):
            points.setdefault((name, unit, grows), []).append({**at, "asInt": str(value)})
    return [
        {
            "name": f"servioticy.step.{name}",
            "unit": unit,
            "sum": {"aggregationTemporality": DELTA, "isMonotonic": grows, "dataPoints": some},
        }
        for (name, unit, grows), some in points.items()
    ]


def _sums(each: Calls | ResourceProfile) -> list[tuple[str, str, int, bool]]:
    if isinstance(each, Calls):
        return [("calls", "1", each.calls, True), ("failed", "1", each.failed, True)]
    return [
        ("processor", "ns", each.processor, True),
        ("memory", "By", each.memory, False),
        ("collections", "1", each.collections, True),
    ]
