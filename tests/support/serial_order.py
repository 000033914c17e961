"""Random graphs and histories, and the engine held against the oracle's serial order."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from memory import MemoryPlatform
from new_service_objects import new_service_object
from oracle import Composite, Object, Oracle, ScriptError
from oracle import Limits as OracleLimits
from plain_trees import Ends
from python_evaluator import PythonEvaluator

from pipeline.engine import Engine
from pipeline.limits import IDLE_SECONDS, NO_LIMITS, Limits
from pipeline.sharing.fairness import Fairness
from pipeline.sharing.shares import Shares
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.model import StreamRef
from servioticy.domain.records import UpdateRecord

LAW = settings.get_profile("law")
SIMPLE = ("d0", "d1")


def functions(objects) -> PythonEvaluator:
    """An evaluator of these objects' composites, by the functions that the oracle has."""
    known = {f"{o.id}/{c.name}": c for o in objects for c in o.composites}

    def compute(trigger, documents: list[bytes | None]) -> int | None:
        composite = known[trigger.name.rpartition("@")[0]]
        read = documents[: len(composite.reads)]  # its own last output may follow
        try:
            return composite.compute([None if each is None else value_of(each) for each in read])
        except ScriptError as error:
            raise Ends("script-error", str(error)) from error

    return PythonEvaluator(compute)


def python(constant: int, filtered: int, thrown: int):
    """The same function as `javascript`, for the oracle."""

    def compute(values: list[int | None]) -> int | None:
        total = (constant + sum(1 if each is None else each for each in values)) % 1000
        if total % thrown == 0:
            raise ScriptError
        return None if total % filtered == 0 else total

    return compute


def javascript(reads: tuple[str, ...], constant: int, filtered: int, thrown: int) -> str:
    terms = "".join(f'+({name}===null?1:{name}.channels.v["current-value"])' for name in reads)
    return (
        f"function({', '.join(reads)}){{var t=({constant}{terms})%1000;"
        f"if(t%{thrown}===0)throw new Error('no');return t%{filtered}===0?null:t}}"
    )


@st.composite
def graphs(draw, cycles: bool, options: bool = False, settling_cycles: bool = False):
    """One to four objects; groups over earlier ones, and over later ones where cycles may be."""
    count = draw(st.integers(1, 4))
    ids = [f"so{n}" for n in range(count)]
    shapes = [draw(st.integers(0 if n else 1, 3)) for n in range(count)]
    objects, codes = [], {}
    for n, id_ in enumerate(ids):
        names = [f"c{k}" for k in range(shapes[n])]
        others = [
            (other, name)
            for m, other in enumerate(ids[:n])
            for name in (*SIMPLE, *(f"c{k}" for k in range(shapes[m])))
        ]
        groups = {}
        for g in range(draw(st.integers(0, 2)) if others else 0):
            stream = draw(st.sampled_from(sorted({name for _, name in others})))
            owners = [other for other, name in others if name == stream]
            members = draw(st.lists(st.sampled_from(owners), min_size=1, unique=True))
            groups[f"g{g}"] = tuple((member, stream) for member in members)
        composites = []
        for k, name in enumerate(names):
            readable = [*SIMPLE, *groups, *(names if cycles else names[: k + 1])]
            reads = tuple(
                draw(st.lists(st.sampled_from(readable), min_size=1, max_size=4, unique=True))
            )
            numbers = (draw(st.integers(0, 9)), draw(st.integers(3, 9)), draw(st.integers(5, 20)))
            chosen = [options and draw(st.booleans()) for _ in range(3)]
            chosen[0] = chosen[0] and (settling_cycles or not cycles)
            composites.append(Composite(name, reads, python(*numbers), *chosen))
            codes[id_, name] = javascript(reads, *numbers)
        objects.append(Object(id_, SIMPLE, tuple(composites), groups))
    return objects, codes


@st.composite
def histories(draw, objects):
    """Updates of any stream, composite ones too: late, equal and jumping timestamps."""
    refs = [(o.id, name) for o in objects for name in SIMPLE] * 4
    refs += [(o.id, c.name) for o in objects for c in o.composites]
    return draw(
        st.lists(
            st.tuples(st.sampled_from(refs), st.integers(0, 25), st.integers(0, 99)),
            min_size=1,
            max_size=40,
        )
    )


def document(thing: Object, codes) -> dict:
    streams = {name: {"channels": {"v": {"type": "number"}}} for name in thing.simple}
    for each in thing.composites:
        code = codes[thing.id, each.name]
        streams[each.name] = {
            "channels": {"v": {"type": "number", "current-value": code}},
            "diamonds": "settle" if each.settles else "first",
            "staleness": "input" if each.by_input else "output",
            "missing": "skip" if each.skips else "null",
        }
    groups = {
        name: {"soIds": [owner for owner, _ in members], "stream": members[0][1]}
        for name, members in thing.groups.items()
    }
    return {"version": "0.2.0", "streams": streams, "groups": groups, "public": "true"}


def platform_with(objects, codes) -> MemoryPlatform:
    platform = MemoryPlatform()
    for each in objects:
        token = platform.tenants.create_tenant(f"t{each.tenant}")
        define(each, codes, platform.tenants.tenant_of(token), platform)
    return platform


def define(thing: Object, codes, tenant: int, platform: MemoryPlatform) -> None:
    platform.changes.create(new_service_object(tenant, thing.id, document(thing, codes)))


def value_of(document: bytes) -> int:
    return int(json.loads(document)["channels"]["v"]["current-value"])


def message_of(verdict: bytes) -> str:
    return str(json.loads(verdict)["message"])


def about_verdict(last: bytes, reads: tuple[str, ...]):
    about = json.loads(last)
    inputs = {name: at for name, at in about["inputs"].items() if name in reads}
    return tuple(about["trigger"].split("/")), about["timestamp"], inputs


AT_ONCE = 1e-9
"""After so many seconds nothing is remembered: with the next look."""


class Generous(Shares):
    """Puts nobody off, however slow the machine is."""

    contested = False

    def over(self) -> frozenset[int]:
        return frozenset()


def run_engine(
    platform, history, cuts, evaluators, limits=NO_LIMITS, known_as=lambda each: each, rests=False
):
    """`known_as` says how the engine knows the store; where it `rests` after each batch it forgets
    all that it knows."""
    for (owner, name), timestamp, value in history:
        body = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
        update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
        platform.log.append(0, UpdateRecord(owner, name, timestamp, update))
    store = known_as(platform.partition_store(argument_names))
    engine = Engine(
        evaluators, 1000, 1000, limits, idle_seconds=AT_ONCE if rests else IDLE_SECONDS
    )
    task = Task(0, store, lambda: platform.output(0), engine, Fairness(Generous(1.0)))
    rows = [Row(offset, value) for offset, value in enumerate(platform.state.log[0])]
    edges = sorted({0, len(rows), *(cut % (len(rows) + 1) for cut in cuts)})
    for first, end in pairwise(edges):
        task.take(rows[first:end])
        for _ in range(2 * rests):  # the first look notes the time that the second one knows
            task.rest()
    assert not rests or task.forgotten or not history


def bounds(limits: Limits) -> OracleLimits:
    """The limits in the oracle's own words."""
    return OracleLimits(limits.hops, limits.computations, limits.tree_bytes)


def assert_equal_to_oracle(objects, codes, history, cuts, evaluators, limits=NO_LIMITS, **named):
    oracle = Oracle(objects, bounds(limits))
    for ref, timestamp, value in history:
        oracle.take(ref, timestamp, value)
    platform = platform_with(objects, codes)
    run_engine(platform, history, cuts, evaluators(objects), limits, **named)
    assert_holds(platform, objects, oracle)


def assert_holds(platform, objects, oracle):
    """The platform has what the oracle has."""
    state = platform.state
    names = {number: ref for ref, number in state.streams.items()}

    stored = {
        (names[row.stream_id], row.timestamp): value_of(row.document)
        for _partition, row in state.updates.values()
    }
    lasts = {
        names[s]: (row.timestamp, value_of(row.document)) for s, row in state.last_updates.items()
    }
    verdicts = Counter({(names[s], v): times for (s, v), (times, _) in state.verdicts.items()})
    reads = {(o.id, c.name): c.reads for o in objects for c in o.composites}
    last_verdicts = {
        (names[s], v): about_verdict(last, reads[names[s]])
        for (s, v), (_, last) in state.verdicts.items()
    }
    not_newer_than = {
        names[s]: int(re.search(r"not newer than (?:output )?(-?\d+)", message_of(last))[1])
        for (s, v), (_, last) in state.verdicts.items()
        if v == "stale"
    }
    emitted = [
        ((each.service_object, each.stream), each.timestamp, value_of(bytes(each.update)))
        for each in state.emitted
    ]
    assert stored == oracle.stored
    assert lasts == oracle.last
    assert emitted == oracle.order
    assert verdicts == oracle.verdicts
    assert last_verdicts == oracle.last_verdicts
    assert not_newer_than == oracle.not_newer_than
    assert state.dead_letters == []


@st.composite
def mixtures(draw, **named):
    """Objects of a tenant, and which of their composites another evaluator has."""
    objects, codes = draw(graphs(**named))
    refs = [StreamRef(o.id, c.name) for o in objects for c in o.composites]
    others = {ref for ref in refs if draw(st.booleans())}
    return objects, codes, others
