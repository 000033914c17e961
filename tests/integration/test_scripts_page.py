"""The examples of docs/scripts.md give what the page says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sandbox_pools import a_pool
from sandbox_trees import a_call, once, value_of
from sandbox_windows import aggregated, an_event, by

from sandbox import ChannelCode, Program, SandboxPool
from sandbox.trees import Event, Last, Made

PAGE = Path(__file__).parents[2] / "docs" / "scripts.md"
BLOCKS = re.findall(r"```js\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
EXAMPLES = [
    tuple(part.strip() for part in line.rsplit("//", 1))
    for block in BLOCKS
    for line in block.splitlines()
]
AT = 1_500_000_000
READINGS = [("hall", 20), ("hall", 21.5), ("attic", 19), ("hall", 24)]


@pytest.fixture(scope="module", params=["v8", "quickjs"])
def pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    pool = a_pool(engine=request.param)
    yield pool
    pool.close()


def an_update(**channels: Any) -> bytes:
    values = {name: {"current-value": value} for name, value in channels.items()}
    return json.dumps({"channels": values, "lastUpdate": AT}).encode()


def a_window() -> dict[str, Any]:
    """A minute of two rooms."""
    updates = [{"celsius": celsius, "room": room} for room, celsius in READINGS]
    documents = [json.loads(an_update(**each)) for each in updates]
    window = {**by("room", updates), **aggregated(updates, sketches=True), "updates": documents}
    return {**window, "start": AT, "end": AT + 60}


def test_there_are_examples() -> None:
    """For every helper, and all that a window has."""
    text = " ".join(code for code, _ in EXAMPLES)
    assert len(EXAMPLES) > 35
    assert all(f"iot.{name}(" in text for name in ("value", "age", "clamp", "round", "distance"))
    methods = ("mean", "min", "max", "stdev", "first", "last", "counts", "quantile", "by")
    assert all(f"air.{name}(" in text for name in methods)


@pytest.mark.parametrize(("code", "expected"), EXAMPLES)
def test_an_example_is_true(pool: SandboxPool, code: str, expected: str) -> None:
    """Behind the allow-list, as a tenant would write it."""
    windowed = "air." in code
    inputs = ("air",) if windowed else ("A", "P", "M")
    function = f"function({', '.join(inputs)}) {{ return JSON.stringify({code}) }}"
    program = Program(code, "function", inputs, (ChannelCode("v", function, "string"),))
    place = Last(1, AT, an_update(at="41.3851,2.1734", n=7))
    call = (
        a_call(program, an_event(a_window()), windowed=True)
        if windowed
        else a_call(program, Event(0, AT + 30, an_update(t=21.5)), lasts=[place])
    )

    assert pool.check(program) == []
    outcome = once(pool, call)
    assert isinstance(outcome, Made), outcome
    assert json.loads(value_of(outcome, "v")) == json.loads(expected)
