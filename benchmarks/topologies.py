"""The paper's experiment: six random topologies, ten updates of every source in sequence.

Built as Service Objects through the REST API: one a source, and one with all composites,
which sum their inputs. The next update is sent when the tree of the last is complete. The
clock runs from before the PUT is written until the derived update is read from the topic
of emitted updates, once for each composite of the tree.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Sequence
from typing import Any

from benchmarks import ground
from benchmarks.connection import Connection
from benchmarks.topology import TABLE_1, Topology, topology
from servioticy.bootstrap import emitted_reader
from servioticy.client.rest import Rest
from servioticy.errors import Unavailable
from servioticy.ports.emitted import UnreadRecord
from servioticy.settings import Settings

SECONDS_FOR_A_TREE = 30.0
PAPER = "the paper: < 1000 ms for most paths, < 100 ms for a single composite"


def run(settings: Settings, arguments: Sequence[str]) -> None:
    """Print p50, p90, p99 and the largest of all paths of every topology."""
    parser = argparse.ArgumentParser("servioticy bench topologies")
    parser.add_argument("--updates", type=int, default=10, help="of every source")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print(PAPER)
    print(" id nodes edges sources sinks max-in max-out |  paths    p50    p90    p99    max ms")
    with ground.platform(settings) as found:
        token = ground.token(found)
        arrivals = _Arrivals()
        reader = emitted_reader(found)
        thread = reader.start(arrivals.take)
        for number, numbers in TABLE_1.items():
            graph = topology(numbers, options.seed)
            with ground.client(found, token) as client:
                built = _Built(graph, client)
            took = _measure(built, Connection(found, token), arrivals, options.updates)
            cuts = [ground.percentile(took, part) for part in (0.5, 0.9, 0.99, 1.0)]
            print(
                f"{number:3d} {numbers.nodes:5d} {numbers.edges:5d} {numbers.sources:7d} "
                f"{numbers.sinks:5d} {numbers.max_in:6d} {numbers.max_out:7d} | {len(took):6d} "
                + " ".join(f"{cut:6.1f}" for cut in cuts),
                flush=True,
            )
        reader.stop()
        thread.join()


class _Arrivals:
    """When each emitted update was read."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._at: dict[tuple[str, str, int], float] = {}

    def take(self, records: list[UnreadRecord]) -> None:
        """Note the time of these; the first counts."""
        now = time.perf_counter()
        with self._changed:
            for each in map(UnreadRecord.read, records):
                self._at.setdefault((each.service_object, each.stream, each.timestamp), now)
            self._changed.notify()

    def of(self, wanted: set[tuple[str, str, int]]) -> list[float]:
        """Return the times of these updates, once all have come."""
        with self._changed:
            if not self._changed.wait_for(lambda: wanted <= self._at.keys(), SECONDS_FOR_A_TREE):
                missing = len(wanted - self._at.keys())
                raise Unavailable(f"{missing} of {len(wanted)} derived updates did not come")
            return [self._at.pop(each) for each in wanted]


class _Built:
    """A topology as Service Objects."""

    def __init__(self, graph: Topology, client: Rest) -> None:
        self.graph = graph
        source = {"version": "0.2.0", "streams": {"data": {"channels": _channel()}}}
        self.sources = [client.create(source) for _ in range(graph.numbers.sources)]
        self.composites = client.create(document(graph, self.sources))


def document(graph: Topology, sources: Sequence[str]) -> dict[str, Any]:
    """Return all composites: `n17` sums the streams and groups that node 17 reads."""
    names = [f"n{node}" for node in range(graph.numbers.nodes)]
    value = '.channels.v["current-value"]'
    streams = {}
    for node in range(graph.numbers.sources, graph.numbers.nodes):
        reads = [names[each] for each in graph.inputs(node)]
        terms = "+".join(f"({name}===null?0:{name}{value})" for name in reads)
        code = f"function({','.join(reads)}){{return {terms}}}"
        streams[names[node]] = {"channels": _channel(code)}
    groups = {names[at]: {"soIds": [id_], "stream": "data"} for at, id_ in enumerate(sources)}
    return {"version": "0.2.0", "groups": groups, "streams": streams}


def _channel(code: str | None = None) -> dict[str, Any]:
    return {"v": {"type": "number", **({} if code is None else {"current-value": code})}}


def _measure(built: _Built, device: Connection, arrivals: _Arrivals, updates: int) -> list[float]:
    """Milliseconds of every path; a round goes before that is not counted."""
    took: list[float] = []
    timestamp = 0
    for number in range(-1, updates):
        for source, id_ in enumerate(built.sources):
            timestamp += 1
            tree = {
                (built.composites, f"n{node}", timestamp) for node in built.graph.reachable(source)
            }
            sent = time.perf_counter()
            device.put(id_, "data", number, timestamp)
            times = arrivals.of(tree)
            if number >= 0:
                took += [(at - sent) * 1000 for at in times]
    return took
