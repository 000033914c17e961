"""What programs make follows from the log alone: all of it once and in order, whoever dies."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from asked_programs import SIDE, Interpreter, KnownToAll, Whimsical, a_manifest
from hypothesis import given
from hypothesis import strategies as st
from log_oracle import value_of
from memory import MemoryPlatform
from new_service_objects import new_service_object
from put_off_runs import Runs, Store, Whims, append
from python_evaluator import PythonEvaluator
from serial_order import LAW

from pipeline.batching.means import Means
from pipeline.engine import Engine
from pipeline.limits import Limits
from pipeline.sharing.fairness import Fairness
from pipeline.state.manifests import AskedPrograms
from pipeline.task import Task
from sandbox import argument_names
from servioticy.domain.evaluators.every import every
from servioticy.domain.model import ServiceObjectKey
from servioticy.domain.records import LogRecord

SHAPES: dict[str, dict[str, tuple[str, ...]]] = {
    "two inputs and a diamond": {"p0": ("d0", "d1"), "c0": ("p0",), "c1": ("p0", "c0")},
    "a chain in a circle": {"p0": ("d0", "p1"), "c0": ("p0",), "p1": ("p0", "d1")},
    "streams beside, of one in a circle": {
        "p0": ("d0", "c1"),
        "q0": (),
        "c1": ("q0",),
        "p1": ("d1",),
        "q1": (),
        "c0": ("q1",),
        "c2": ("p1",),
    },
}
VERSIONS = [3, 4, 5, 3]
"""Of the program, by those of the document: back at last."""


def a_document(shape: dict[str, tuple[str, ...]], version: int) -> dict[str, Any]:
    streams: dict[str, Any] = {
        name: {"channels": {"v": {"type": "number"}}} for name in ("d0", "d1")
    }
    for name, reads in shape.items():
        if name.startswith(SIDE):
            operator = {"of": f"p{name[-1]}"}
            streams[name] = {"channels": {"v": {"type": "number"}}, "operator": operator}
        elif name.startswith("p"):
            operator = {"name": "counts", "version": version, "inputs": list(reads)}
            streams[name] = {"channels": {"v": {"type": "number"}}, "operator": operator}
        else:
            code = f"function({', '.join(reads)}){{return 1}}"
            streams[name] = {"channels": {"v": {"type": "number", "current-value": code}}}
    return {"version": "0.2.0", "streams": streams, "public": "true"}


class World:
    """Two tenants with an object of one shape each, and programs that answer by whim."""

    def __init__(self, shape: dict[str, tuple[str, ...]], draw: Any, *, batch: int) -> None:
        self.shape, self.platform = shape, MemoryPlatform()
        self.tenants: dict[str, int] = {}
        for id_ in ("so", "other"):
            tenant = self.platform.tenants.tenant_of(self.platform.tenants.create_tenant(id_))
            self.tenants[id_] = tenant
            new = new_service_object(tenant, id_, a_document(shape, VERSIONS[0]))
            self.platform.changes.create(new)
        self.at = 0
        whims = iter(draw(st.lists(st.integers(0, 11), max_size=60)))
        self.programs = Whimsical(lambda below: next(whims, below - 1) % below)
        self.keeps_state = {3: True, 4: True, 5: False}
        self.known = KnownToAll(
            {
                each: a_manifest(batch, keeps_state=keeps)
                for each, keeps in self.keeps_state.items()
            }
        )

    def forget(self) -> None:
        """Both objects keep nothing of what their first programs kept."""
        for id_, tenant in self.tenants.items():
            self.platform.changes.forget(ServiceObjectKey(tenant, id_), "p0", 1000)

    def next_version(self) -> None:
        """Both documents name the next version of the program."""
        self.at += 1
        for id_, tenant in self.tenants.items():
            revision = self.platform.graph.nodes([id_])[id_].revision
            document = a_document(self.shape, VERSIONS[self.at])
            self.platform.changes.replace(new_service_object(tenant, id_, document), revision)


class Asking(Runs):
    """Whose workers ask these programs."""

    world: World

    def _new(self) -> Task:
        self.platform.state.claims.clear()
        self.world.programs.die()
        store = Store(self.platform.partition_store(argument_names), self.taken, self.deaths)
        ticks = count()
        engine = Engine(
            self.evaluators,
            self.most,
            10**6,
            Limits(100, 10_000),
            clock=lambda: next(ticks) / 100,
            **self.means,
        )
        means = Means(programs=AskedPrograms(self.world.programs, self.world.known))
        fairness = Fairness(self.shares)  # type: ignore[arg-type]
        return Task(0, store, lambda: self.platform.output(0), engine, fairness, means=means)


def runs_of(world: World, shares: Whims, deaths: dict[int, str], most: int = 1000) -> Asking:
    evaluators = every(PythonEvaluator(plus_one))
    kind = type("Runs", (Asking,), {"world": world})
    found = kind(world.platform, evaluators, shares, deaths, most, now=lambda: 1e9)
    assert isinstance(found, Asking)
    return found


def plus_one(trigger: Any, documents: list[bytes | None]) -> int:
    document = documents[trigger.argument]
    assert document is not None
    return value_of(document) + 1


def take_all(runs: Asking) -> None:
    state = runs.platform.state
    if 0 not in state.progress:
        runs.take(0, 0)
    while (at := state.progress[0].next_offset) < (end := len(state.log[0])):
        runs.take(at, end)


def finish(runs: Asking) -> None:
    """Until all is answered, and nothing new comes of it."""
    state = runs.platform.state
    runs.shares.always = set()
    for _ in range(400):
        take_all(runs)
        runs.finish()
        runs.rest()
        if state.progress[0].next_offset == len(state.log[0]) and not waits(state):
            return
    raise AssertionError("it does not end")


def waits(state: Any) -> bool:
    return any((each.due or 0) < 0 for each in state.kept_entries.values())


def records_of(platform: MemoryPlatform, id_: str) -> list[LogRecord]:
    return [r for _at, r in platform.log.records(0) if getattr(r, "service_object", "") == id_]


def assert_as_interpreted(world: World, id_: str, *, all_: bool) -> None:
    programs = {each for each in world.shape if each.startswith("p")}
    plain = Interpreter(world.shape, programs, VERSIONS, world.keeps_state)
    for record in records_of(world.platform, id_):
        plain.take(record)
    state = world.platform.state
    names = {number: ref for ref, number in state.streams.items()}
    stored = {
        (names[row.stream_id][1], row.timestamp): value_of(row.document)
        for _partition, row in state.updates.values()
        if names[row.stream_id][0] == id_
    }
    verdicts = {
        (names[stream][1], kind): times
        for (stream, kind), (times, _last) in state.verdicts.items()
        if names[stream][0] == id_
    }
    emitted = [
        (each.stream, each.timestamp, value_of(bytes(each.update)))
        for each in state.emitted
        if each.service_object == id_
    ]
    assert not any(each.queue for each in plain.waits.values())
    assert stored == plain.stored
    assert verdicts == dict(plain.verdicts)
    if all_:
        assert emitted == plain.emitted
    else:  # after a death some of it comes again
        assert set(emitted) == set(plain.emitted)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@LAW
@given(data=st.data())
def test_what_programs_make_follows_from_the_log(data, shape) -> None:
    """However questions are cut, answers late or twice, versions changed, what is kept forgotten;
    whoever dies."""
    draw = data.draw
    world = World(shape, draw, batch=draw(st.sampled_from([1, 2, 5, 100])))
    moments = st.sampled_from(["before", "after"])
    deaths = draw(st.dictionaries(st.integers(1, 25), moments, max_size=3))
    died = bool(deaths)
    whims = Whims(draw(st.lists(st.sets(st.integers(1, 2)), max_size=30)))
    runs = runs_of(world, whims, deaths, draw(st.sampled_from([1, 3, 1000])))
    take_all(runs)
    put = st.tuples(st.sampled_from(["d0", "d1"]), st.integers(0, 25), st.integers(0, 99))
    change = st.tuples(st.just("change"), st.just(0), st.just(0))
    forget = st.tuples(st.just("forget"), st.just(0), st.just(0))
    for stream, timestamp, number in draw(
        st.lists(st.one_of(put, put, put, put, change, forget), max_size=30)
    ):
        if stream == "change":
            if world.at + 1 < len(VERSIONS):
                world.next_version()
            continue
        if stream == "forget":
            world.forget()
            continue
        for id_ in world.tenants:
            append(world.platform, [((id_, stream), timestamp, number)])
        if draw(st.integers(0, 2)) == 0:
            runs.take(
                world.platform.state.progress[0].next_offset,
                len(world.platform.state.log[0]),
            )
        if draw(st.integers(0, 2)) == 0:
            runs.rest()
    finish(runs)

    for id_ in world.tenants:
        assert_as_interpreted(world, id_, all_=not died)
