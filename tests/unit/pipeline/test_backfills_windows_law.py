"""Windows that are filled later equal those that were defined first."""

from __future__ import annotations

import pytest
from backfilled import World
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from played_windows import BASE, CUTS, GRAPHS, NOW, Real, body_of, compute, value_of
from python_evaluator import PythonEvaluator, Trigger

from servioticy.domain.model import StreamRef

WITHOUT_END = {"count", "global"}
"""Windows of which it is not known where one begins but from the first update on."""


@pytest.mark.parametrize("graph", GRAPHS)
@settings(settings.get_profile("trials"), max_examples=examples(8))
@given(data=st.data())
def test_windows_filled_later_are_those_defined_first(data, graph) -> None:
    """With the times that the log had; of any span where all that they read is not windows."""
    reads, windowed = GRAPHS[graph]
    names = sorted(set(CUTS) - ({"global"} if graph == "a circle" else set()))
    cuts = {name: data.draw(st.sampled_from(names)) for name in sorted(windowed)}
    steps = st.tuples(
        st.integers(0, 6) | st.just(40), st.sampled_from(["d0", "d1"]), st.integers(0, 99)
    )
    at, series = BASE, {}
    for later, stream, value in data.draw(st.lists(steps, min_size=8, max_size=30)):
        at += later
        series.setdefault((at, stream), value)
    real = Real(body_of(reads, cuts))
    for (at, stream), value in sorted(series.items()):
        real.put(stream, at, value)
    real.pass_to(NOW)
    filled = StreamRef("so", data.draw(st.sampled_from(first_of(graph))))
    world = World(real.platform, ["so"], filled, value_of)
    since = data.draw(st.sampled_from(sorted(series)))[0] + data.draw(st.integers(0, 3))
    if WITHOUT_END & set(cuts.values()) or any(windowed & set(read) for read in reads.values()):
        since = BASE
    until = data.draw(st.integers(since + 1, since + 100) | st.just(NOW))
    at_once = data.draw(st.integers(1, 40))

    made = world.filled(since, until, at_once, PythonEvaluator(compute), NOW)

    assert made == world.computed(since, until)


def first_of(graph: str) -> list[str]:
    """The composites before which there are no windows that stay: those came out of order."""
    reads, windowed = GRAPHS[graph]
    if graph == "a circle":
        return sorted(reads)
    return sorted(name for name, read in reads.items() if not windowed & set(read))


def test_what_is_taken_back_is_filled_as_such_whatever_code_makes_of_that() -> None:
    """A window's result comes late into a session that is out, as nobody had sent for long."""
    body = body_of({"c0": ("d0",), "c1": ("c0", "d1")}, {})
    body["streams"]["c0"]["window"] = {"type": "tumbling", "size": "100s"}
    body["streams"]["c1"]["window"] = {"type": "session", "gap": "3s", "lateness": "300s"}
    real = Real(body)
    for at, stream in ((3, "d1"), (90, "d0"), (98, "d1"), (105, "d1"), (112, "d0")):
        real.put(stream, BASE + at, 1)
    real.pass_to(NOW)
    whole = [at - BASE for at, _ in real.stored()["c1"]]

    def computing(trigger: Trigger, documents: list[bytes | None]) -> int | None:
        taken_back = b'"retracted"' in (documents[trigger.argument] or b"")
        return None if taken_back else compute(trigger, documents)

    world = World(real.platform, ["so"], StreamRef("so", "c0"), lambda each: b"retracted" in each)
    made = world.filled(BASE, NOW, 40, PythonEvaluator(computing), NOW)
    filled = {at - BASE: is_gone for (ref, at), is_gone in made.items() if ref.stream == "c1"}

    assert sorted(at for at, is_gone in filled.items() if not is_gone) == whole
    assert [at for at, is_gone in filled.items() if is_gone] == [100]
