"""The salesman as composite streams: his Service Object, and his steps in what was measured.

A stream for each step, and of paths and distances one for each part of all paths. All of them
choose `diamonds: "settle"`, so each step is a level of the tree of its own, for which the pipeline
asks its evaluator at once: how long that takes is how long the step takes, its parts together in
one process. The text of an input is scaled to what the body of a request may have, 1 MiB.
"""

from __future__ import annotations

import secrets
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks import ground
from monitoring import status
from monitoring.analysis import steps
from monitoring.analysis.steps import Step
from monitoring.configuration import file_of
from monitoring.model import Measurement, RuntimePerformance
from monitoring.state import FOLDER
from servioticy.errors import Unavailable
from servioticy.settings import Settings
from servioticy.settings.places import api_url

CHARACTERS = 1_000_000
TOKEN = "SALESMAN_TOKEN"  # noqa: S105  the name of a variable
LEVELS = ("extraction", "paths", "distance", "summary")
TRANSFORM = "pipeline.stages.transform"
ASPECTS = f'[[aspect]]\npointcut = "{TRANSFORM}"\n'
WEAVE_SECONDS = PUBLISH_SECONDS = 60.0

_EXTRACTION = """function(input) {
  var text = iot.value(input), nodes = [], at = text.indexOf('<');
  while (at !== -1) {
    var place = text.slice(at + 1, text.indexOf('>', at)).split(',');
    nodes.push([parseFloat(place[0]), parseFloat(place[1])]);
    at = text.indexOf('<', at + 1);
  }
  return JSON.stringify(nodes);
}"""
_PATHS = """function(extraction) {
  var nodes = JSON.parse(iot.value(extraction)), paths = [], others = [];
  for (var node = 1; node < nodes.length; node++) { others.push(node); }
  function go(path, rest) {
    if (rest.length === 0) { paths.push(path); return; }
    for (var at = 0; at < rest.length; at++) {
      go(path.concat(rest[at]), rest.slice(0, at).concat(rest.slice(at + 1)));
    }
  }
  for (var at = PART; at < others.length; at += PARTS) {
    go([0, others[at]], others.slice(0, at).concat(others.slice(at + 1)));
  }
  return JSON.stringify({nodes: nodes, paths: paths});
}"""
_DISTANCE = """function(pathsPART) {
  var given = JSON.parse(iot.value(pathsPART)), nodes = given.nodes, least = 1e300;
  for (var number = 0; number < given.paths.length; number++) {
    var path = given.paths[number], length = 0;
    for (var at = 1; at < path.length; at++) {
      var a = nodes[path[at - 1]], b = nodes[path[at]];
      length += Math.sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]));
    }
    if (length < least) { least = length; }
  }
  return least;
}"""


class Found(NamedTuple):
    """Steps of the platform, and the inputs whose steps cannot be told apart."""

    steps: list[Step]
    unclear: int


def document(parts: int) -> dict[str, Any]:
    """Return the Service Object: `input`, and a composite for each step and part."""

    def composite(channel: str, kind: str, code: str) -> dict[str, Any]:
        return {
            "diamonds": "settle",
            "channels": {channel: {"type": kind, "current-value": code}},
        }

    streams: dict[str, Any] = {"input": {"channels": {"text": {"type": "string"}}}}
    streams["extraction"] = composite("nodes", "string", _EXTRACTION)
    for part in range(parts):
        code = _PATHS.replace("PARTS", str(parts)).replace("PART", str(part))
        streams[f"paths{part}"] = composite("paths", "string", code)
    for part in range(parts):
        code = _DISTANCE.replace("PART", str(part))
        streams[f"distance{part}"] = composite("least", "number", code)
    names = [f"distance{part}" for part in range(parts)]
    values = ", ".join(f"iot.value({each})" for each in names)
    code = f"function({', '.join(names)}) {{ return Math.min({values}) }}"
    streams["summary"] = {**composite("least", "number", code), "missing": "skip"}
    return {"name": "salesman", "version": "0.2.0", "streams": streams}


class Travelling:
    """A platform that has the salesman's streams, and whose pipeline is measured."""

    def __init__(self, settings: Settings, parts: int, token: str = "") -> None:
        """Make a Service Object, of a tenant of its own without a token; have the pipeline woven.

        Raises Unavailable where it is not.
        """
        self._settings = settings
        token = token or ground.token(settings)
        with ground.client(settings, token) as api:
            self.service_object = api.create(document(parts))
        self.environment = {TOKEN: token}
        file = file_of(settings)
        if file.exists():
            raise Unavailable(f"{file} is in use: measurements of others would be among these")
        file.write_text(ASPECTS, encoding="utf-8")
        until = time.monotonic() + WEAVE_SECONDS
        while not status.of(settings).is_well:
            if time.monotonic() > until:
                raise Unavailable("the pipeline is not woven; `servioticy monitoring status` says")
            time.sleep(0.1)

    def arguments(self, traces: str) -> list[str]:
        """Return what the program is told that sends inputs, in such traces."""
        address = api_url(self._settings).partition("://")[2]
        begin = time.time_ns() // 1_000_000
        about = ["--address", address, "--service-object", self.service_object]
        return [*about, "--begin", str(begin), "--traces", traces]

    def close(self) -> None:
        """Unweave it."""
        file_of(self._settings).unlink(missing_ok=True)

    def files(self) -> list[Path]:
        """Return what the platform's processes have measured."""
        return sorted((self._settings.data_path / FOLDER / "measurements").glob("*.ndjson*"))

    def found(self, traces: str, name: str, inputs: int) -> Found:
        """Return the platform's steps in such traces, as told_apart does, once all are told."""
        until = time.monotonic() + PUBLISH_SECONDS
        while True:
            found = told_apart(steps.lines(self.files()), traces, name)
            known = len({each.sequence for each in found.steps}) + found.unclear
            if known >= inputs or time.monotonic() > until:
                return found
            time.sleep(0.2)


def fresh_traces() -> str:
    """Return the first 24 digits of traces that nobody has; the rest is the input's number."""
    return secrets.token_hex(12)


def told_apart(lines: Iterable[bytes], traces: str, name: str) -> Found:
    """Return the steps of each input by their order: the pipeline takes a tree level by level.

    A call about several inputs is a step of each. Inputs that have more or fewer are unclear: they
    were computed again, or apart from their batch. `name` is that of the program which sent them,
    as its own sequences have it.
    """
    by_input: dict[str, list[RuntimePerformance]] = defaultdict(list)
    decoder = msgspec.json.Decoder(Measurement)
    for line in lines:
        measured = decoder.decode(line)
        if not isinstance(measured, RuntimePerformance) or None in (measured.start, measured.end):
            continue
        if measured.node.node_purpose != TRANSFORM:
            continue
        for trace in {measured.sequence, *(each.partition("-")[0] for each in measured.links)}:
            if trace.startswith(traces):
                by_input[f"{name}:run-{int(trace[len(traces) :], 16)}"].append(measured)
    found: list[Step] = []
    unclear = 0
    for sequence, calls in by_input.items():
        if len(calls) != len(LEVELS):
            unclear += 1
            continue
        found += _levels(calls, sequence)
    return Found(found, unclear)


def _levels(calls: Sequence[RuntimePerformance], sequence: str) -> Iterator[Step]:
    ordered = sorted(calls, key=lambda each: each.start or 0)
    for level, call in zip(LEVELS, ordered, strict=True):
        yield Step(level, call.node.node_id, call.start or 0, call.end or 0, sequence)
