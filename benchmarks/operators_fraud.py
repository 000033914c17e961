"""The paper's query: payments, filtered by a model as fraud, and what passes summed.

Luthra et al., "Operator as a Service", 2020, figure 4, tables III and IV. Its payments are those
of mlg-ulb/creditcardfraud: an amount, and 28 principal components, of which one in 580 is fraud.
Ours are generated in that shape: components of fraud lie elsewhere. The model is the linear
discriminant of as many again that are known. The same query in JavaScript, in the sandbox: two
composites; and as an operator in Python and in Go: of two streams, the second with a state.
"""

from __future__ import annotations

import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import orjson

from benchmarks.operator_nodes import ROOM, ask, node_with
from operators.node import Node
from sandbox import ChannelCode, SandboxPool
from sandbox import Program as Script
from sandbox.trees import Bounds, Call, Event, Last, Wake, Wiring
from sandbox.trees import Node as Stream
from servioticy.bootstrap import sandbox_pool
from servioticy.errors import Unavailable
from servioticy.ports.programs import Program, Question
from servioticy.settings import Settings

COMPONENTS = [f"v{number}" for number in range(1, 29)]
PART = 1 / 580
KNOWN = 20_000
TRIED = 20_000
MOST = 1000
"""Payments in a question."""
TICK = 0.001
BOUNDS = Bounds(hops=64, computations=10_000)

PYTHON = """
import json
from servioticy_operator import serve

MODEL = json.load(open("model.json"))
WEIGHTS = list(MODEL["weights"].items())

def query(event, state):
    values = event.channels
    if event.stream == "payments":
        if MODEL["bias"] + sum(weight * values[name] for name, weight in WEIGHTS) > 0:
            yield {"amount": values["amount"]}
    else:
        count, total = state.get("count", 0) + 1, state.get("total", 0) + values["amount"]
        state.put("count", count)
        state.put("total", total)
        yield {"count": count, "total": total}

serve(query)
"""

GO = """package main

import (
	"encoding/json"
	"os"
)

type weighed struct {
	name   string
	weight float64
}

func main() {
	var model struct {
		Bias    float64
		Weights map[string]float64
	}
	content, _ := os.ReadFile("model.json")
	json.Unmarshal(content, &model)
	weights := []weighed{}
	for name, weight := range model.Weights {
		weights = append(weights, weighed{name, weight})
	}
	Serve(func(event Event, state *State) ([]Update, error) {
		amount := event.Channels["amount"].(float64)
		if event.Stream == "payments" {
			score := model.Bias
			for _, each := range weights {
				score += each.weight * event.Channels[each.name].(float64)
			}
			if score <= 0 {
				return nil, nil
			}
			return []Update{{Channels: map[string]any{"amount": amount}}}, nil
		}
		count, total := 1+state.Number("count"), amount+state.Number("total")
		state.Put("count", count)
		state.Put("total", total)
		return []Update{{Channels: map[string]any{"count": count, "total": total}}}, nil
	})
}
"""


class Payment(NamedTuple):
    """A generated payment."""

    channels: dict[str, float]
    is_fraud: bool


class Query(Protocol):
    """The query in some language."""

    def filtered(self, payments: Sequence[bytes]) -> int:
        """Take payments, and sum those that pass; return how many have passed until now."""


def payments(count: int, seed: int) -> list[Payment]:
    """Return so many, the same for the same seed."""
    chance = random.Random(seed)  # noqa: S311  no secret
    found = []
    for _ in range(count):
        is_fraud = chance.random() < PART
        shift = 1.6 if is_fraud else 0.0
        channels = {
            name: round(chance.gauss(shift * (-1) ** place if place < 12 else 0.0, 1.0), 4)
            for place, name in enumerate(COMPONENTS)
        }
        channels["amount"] = round(chance.lognormvariate(3, 1.5), 2)
        found.append(Payment(channels, is_fraud))
    return found


def model(known: Sequence[Payment]) -> dict[str, Any]:
    """Return the linear discriminant of these: weights of components, and a bias."""
    means = {
        kind: {
            name: statistics.fmean(x.channels[name] for x in known if x.is_fraud is kind)
            for name in COMPONENTS
        }
        for kind in (False, True)
    }
    weights = {name: means[True][name] - means[False][name] for name in COMPONENTS}
    middle = sum(
        weight * (means[True][name] + means[False][name]) / 2 for name, weight in weights.items()
    )
    spread = sum(weight * weight for weight in weights.values())
    return {"weights": weights, "bias": -middle - spread / 4}


def run(settings: Settings, rates: Sequence[int], seconds: float) -> None:
    """Print of each language what it found, and latencies and throughput."""
    known = model(payments(KNOWN, 1))
    tried = payments(TRIED, 2)
    frauds = sum(each.is_fraud for each in tried)
    print(f"{TRIED:,} payments, {frauds} of them fraud")
    ways: list[tuple[str, Callable[[], Any]]] = [
        ("JavaScript", lambda: _in_the_sandbox(settings, known)),
        ("Python", lambda: _as_an_operator("python", known)),
    ]
    if shutil.which("go") is not None:
        ways.append(("Go", lambda: _as_an_operator("go", known)))
    for name, way in ways:
        with way() as (query, spell):
            spelt = [spell(each, number) for number, each in enumerate(tried)]
            began, passed = time.perf_counter(), 0
            for at in range(0, TRIED, MOST):
                passed = query.filtered(spelt[at : at + MOST])
            speed = TRIED / (time.perf_counter() - began)
            print(
                f"  {name:10} {passed} found; {speed:10,.0f} payments/s in questions of {MOST:,}"
            )
            for rate in rates:
                _print(rate, *_paced(query, spelt, rate, seconds))


def _paced(
    query: Query, spelt: Sequence[bytes], rate: int, seconds: float
) -> tuple[float, list[float]]:
    """Send at a rate; return how many a second were answered, and what each question took."""
    times: list[float] = []
    sent, began = 0, time.perf_counter()
    while (now := time.perf_counter()) - began < seconds:
        due = int((now - began) * rate) - sent
        if due <= 0:
            time.sleep(TICK)
            continue
        due = min(due, MOST)
        query.filtered([spelt[(sent + each) % len(spelt)] for each in range(due)])
        first = began + sent / rate
        times.append(time.perf_counter() - first)
        sent += due
    return sent / (time.perf_counter() - began), times


def _print(rate: int, speed: float, times: Sequence[float]) -> None:
    cut = [1000 * each for each in statistics.quantiles(times, n=100)]
    print(
        f"    at {rate:6,}/s: {speed:8,.0f} answered/s; from the first of a question to all that "
        f"follows {1000 * statistics.fmean(times):7.2f} ms mean, {cut[89]:7.2f} p90, "
        f"{cut[94]:7.2f} p95, {cut[98]:7.2f} p99",
        flush=True,
    )


class _Operator:
    """The query by a program."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._state: bytes | None = None
        self._passed = 0

    def filtered(self, payments: Sequence[bytes]) -> int:
        program = Program(1, "query", 1)
        reply = ask(self._node, Question(b"1", program, "bank/frauds", None, payments))
        if reply.outputs:
            self._passed += len(reply.outputs)
            come = [
                b'{"stream":"frauds","timestamp":1,"channels":%b,"version":1,"correlation":null}'
                % each.channels
                for each in reply.outputs
            ]
            summed = Question(b"2", program, "bank/totals", self._state, come)
            self._state = ask(self._node, summed).state
        return self._passed


@contextmanager
def _as_an_operator(
    language: str, known: dict[str, Any]
) -> Iterator[tuple[Query, Callable[[Payment, int], bytes]]]:
    main = {"python": {"main.py": PYTHON}, "go": {"main.go": GO}}[language]
    files = {**main, "model.json": orjson.dumps(known).decode()}
    with ExitStack() as stack:
        built: dict[str, bytes] = {}
        if language == "go":
            built["counter"] = _built(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        made = node_with(language, files, built=built, name="query", batch={"max": MOST})
        yield _Operator(stack.enter_context(made)), _event


def _built(folder: Path) -> bytes:
    for each in ("samples", "kits"):
        shutil.copytree(ROOM / each / "go", folder, dirs_exist_ok=True)
    (folder / "main.go").write_text(GO)
    done = subprocess.run(["go", "build", "-o", "counter", "."], cwd=folder, capture_output=True)  # noqa: S607
    if done.returncode:
        raise Unavailable(f"go: {done.stderr.decode()}")
    return (folder / "counter").read_bytes()


def _event(payment: Payment, number: int) -> bytes:
    return orjson.dumps(
        {
            "stream": "payments",
            "timestamp": number + 1,
            "channels": payment.channels,
            "version": 1,
            "correlation": None,
        }
    )


class _Scripts:
    """The query by two composites of the sandbox."""

    def __init__(self, pool: SandboxPool, known: dict[str, Any]) -> None:
        self._pool = pool
        score = " + ".join(
            f"{weight!r} * c.{name}['current-value']" for name, weight in known["weights"].items()
        )
        keep = (
            f"function(p){{const c = p.channels; return {known['bias']!r} + {score} > 0"
            " ? c.amount['current-value'] : null}"
        )
        add = "function(f, own){return (own ? own.channels.%s['current-value'] : 0) + %s}"
        frauds = Script("frauds", "function", ("p",), (ChannelCode("amount", keep, "number"),))
        totals = Script(
            "totals",
            "function",
            ("f", "own"),
            (
                ChannelCode("count", add % ("count", "1"), "number"),
                ChannelCode(
                    "total", add % ("total", "f.channels.amount['current-value']"), "number"
                ),
            ),
        )
        nodes = (
            Stream((Wake(0, 1, 0),)),
            Stream((Wake(0, 2, 0),), frauds, ((0,),)),
            Stream((), totals, ((1,), (2,)), own=1),
        )
        self._wiring = Wiring("query", nodes)
        self._last = Last(2, 0, None)
        self._sent = 0
        self._passed = 0

    def filtered(self, payments: Sequence[bytes]) -> int:
        trees = []
        for each in payments:
            self._sent += 1
            trees.append([Event(0, self._sent, each)])
        while trees:
            lasts = [Last(1, 0, None), self._last]
            call = Call(self._wiring, ["", "frauds", "totals"], lasts, trees, BOUNDS)
            (grown,) = self._pool.grow("tenant", [call])
            if grown.failed or not grown.made:
                raise Unavailable("the sandbox is too slow here to be measured")
            for tree in grown.made:
                for made in tree:
                    if made.node == 2:
                        self._passed += 1
                        self._last = Last(2, made.timestamp, made.document)
            trees = trees[len(grown.made) :]
        return self._passed


@contextmanager
def _in_the_sandbox(
    settings: Settings, known: dict[str, Any]
) -> Iterator[tuple[Query, Callable[[Payment, int], bytes]]]:
    pool = sandbox_pool(settings)
    try:
        yield _Scripts(pool, known), _document
    finally:
        pool.close()


def _document(payment: Payment, number: int) -> bytes:
    channels = {name: {"current-value": value} for name, value in payment.channels.items()}
    return orjson.dumps({"channels": channels, "lastUpdate": number + 1})
