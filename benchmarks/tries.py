"""How long a trial of a changed document takes, by what its composites are.

The last updates of a stream are played through the version in force and through a changed
one, by what computes trials beside an API process: with code in V8, without HTTP and Postgres.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from statistics import median
from typing import Any, cast

import orjson

from api.stepping.step import Step
from api.trials.stored import Reading, Stored
from api.trials.trial import MOST_UPDATES, Found, Trial, Update
from api.trials.trying import TrialsHere
from sandbox import argument_names
from servioticy import bootstrap
from servioticy.domain.access import Scope
from servioticy.domain.documents.service_objects import parse_service_object
from servioticy.domain.evaluators.javascript import JavaScript
from servioticy.domain.model import ServiceObject, StreamRef
from servioticy.settings import Settings

BASE = 1_760_000_000
"""In seconds: the first update."""

MEAN = "air.mean('celsius')"
SHAPES: dict[str, tuple[dict[str, Any], str]] = {
    "no window": ({}, "iot.value(air, 'celsius')"),
    "tumbling, 1 min": ({"window": {"type": "tumbling", "size": "1m"}}, MEAN),
    "hopping, 30 min every 1 min": (
        {"window": {"type": "hopping", "size": "30m", "every": "1m"}},
        MEAN,
    ),
    "sliding, 5 min": ({"window": {"type": "sliding", "size": "5m"}}, MEAN),
    "sliding, 5 min, quantile": (
        {"window": {"type": "sliding", "size": "5m"}},
        "air.quantile('celsius', 0.9)",
    ),
    "sessions": ({"window": {"type": "session", "gap": "30s", "max": "1h"}}, MEAN),
    "count, 100 every 10": ({"window": {"type": "count", "size": 100, "every": 10}}, MEAN),
    "early with each update": (
        {"window": {"type": "tumbling", "size": "20m", "emit": "updates"}},
        MEAN,
    ),
    "silent, 10 min": ({"silent": "10m"}, "air ? air.count : 0"),
}


class _Given:
    """What is played, in place of what is stored."""

    def __init__(self, updates: Sequence[Update]) -> None:
        self._updates = updates

    def found(self, _trial: Trial, _versions: object) -> Reading[Found]:
        yield Step(b"")
        return Found(self._updates, {}, (), complete=True, since=self._updates[0].timestamp)


def run(settings: Settings, arguments: Sequence[str]) -> int | None:
    """Print a line for each kind of composite."""
    parser = argparse.ArgumentParser("servioticy bench tries", description=__doc__)
    parser.add_argument("--updates", type=int, default=MOST_UPDATES)
    parser.add_argument("--seconds", type=int, default=10, help="from one update to the next")
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args(arguments)
    pool = bootstrap.sandbox_pool(settings, max_workers=1)
    try:
        for name in SHAPES:
            _measure(name, JavaScript(pool), asked)
    finally:
        pool.close()
    return None


def _measure(name: str, evaluator: JavaScript, asked: argparse.Namespace) -> None:
    updates = [_update(number, asked.seconds) for number in range(asked.updates)]
    here = TrialsHere(cast(Stored, _Given(updates)), evaluator)
    now = (updates[-1].timestamp + 3600) * 1000
    before, after = (_service_object(name, code) for code in ("", " + 1"))
    trial = Trial(1, Scope(), "so", [before], [after], asked.updates, 100, now)
    took = []
    for _ in range(asked.runs + 1):
        began = time.perf_counter()
        *_, last = here.steps(trial)
        took.append(time.perf_counter() - began)
    answer = orjson.loads(last.documents)
    results = len(answer.get("windows", {}).get("results", answer["updates"]))
    told = f"{len(last.documents) >> 10} KiB"
    told += f"; {answer['truncated']}" if "truncated" in answer else ""
    print(
        f"{name:28} {median(took[1:]):.2f} s (most {max(took[1:]):.2f}, first {took[0]:.2f}); "
        f"{answer['played']:,} updates, {results:,} results, {told}",
        flush=True,
    )


def _update(number: int, seconds: int) -> Update:
    timestamp = BASE + number * seconds
    channels = {"celsius": {"current-value": 20 + number % 17}}
    document = orjson.dumps({"channels": channels, "lastUpdate": timestamp})
    return Update(StreamRef("so", "air"), timestamp, document, played=True)


def _service_object(name: str, code: str) -> ServiceObject:
    """A composite that reads one stream."""
    options, value = SHAPES[name]
    simple = {"channels": {"celsius": {"type": "number"}}}
    text = f"function(air) {{ return {value}{code} }}"
    composite = {"channels": {"x": {"type": "number", "current-value": text}}} | options
    body = {
        "version": "0.2.0",
        "streams": {"air": simple, "c": composite},
    }
    definition = parse_service_object(body, "so", argument_names)
    numbers = {each.ref.stream: number for number, each in enumerate(definition.streams)}
    return ServiceObject(definition, 1, 1, 0, numbers)
