"""Whatever a call of the worker raises, no accepted record stops a partition, none is lost."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory import MemoryPlatform
from oracle import Composite, Object
from put_off_runs import append
from serial_order import LAW, define, value_of

from pipeline.engine import Engine
from pipeline.task import Task
from pipeline.work import Row
from sandbox import InfraError, argument_names
from servioticy.errors import Unavailable

STORE = (
    "begin",
    "store",
    "component",
    "service_objects",
    "last_updates",
    "put_off",
    "taken_up",
    "waiting",
)
OUTPUT = ("emit", "flush", "poll", "dead_letter", "send_to_log")
POISON = 66


class Bug(Exception):
    """Something that nobody foresaw."""


class Faulty:
    """Raises what is due at the n-th call of any of the named methods, else does as it should."""

    def __init__(self, target: object, names: tuple[str, ...], due: list[type | None]) -> None:
        self._target, self._names, self._due = target, names, due

    def __getattr__(self, name: str):
        found = getattr(self._target, name)
        if name not in self._names:
            return found

        def call(*arguments, **named):
            error = self._due.pop() if self._due else None
            if error is not None:
                raise error("said at random")
            return found(*arguments, **named)

        return call

    @property
    def acknowledged(self) -> int:
        return self._target.acknowledged

    @acknowledged.setter
    def acknowledged(self, offset: int) -> None:
        self._target.acknowledged = offset


class PoisonedStore:
    """Fails with a bug whenever a batch holds the one value."""

    def __init__(self, store) -> None:
        self._store = store

    def __getattr__(self, name: str):
        return getattr(self._store, name)

    def store(self, batch):
        if any(value_of(each.document) == POISON for each in batch.updates):
            raise Bug("cannot store this value")
        return self._store.store(batch)


def plus_one(values):
    return None if values[0] is None else values[0] + 1


CODE = 'function(d0){return d0.channels.v["current-value"]+1}'


def platform_with(values: list[int]) -> MemoryPlatform:
    platform = MemoryPlatform()
    tenant = platform.tenants.tenant_of(platform.tenants.create_tenant("t"))
    thing = Object("so", ("d0",), (Composite("c", ("d0",), plus_one),))
    define(thing, {("so", "c"): CODE}, tenant, platform)
    append(platform, [(("so", "d0"), at, value) for at, value in enumerate(values, start=1)])
    return platform


def run(platform: MemoryPlatform, evaluators, store, output) -> None:
    """As Spark does: a task that fails is begun anew, with the rows from its progress on."""
    log = platform.state.log[0]
    rows = [Row(offset, value) for offset, value in enumerate(log)]
    for _ in range(200):
        platform.state.claims.clear()
        engine = Engine(
            evaluators, 7, 10**6, heals=(Unavailable, InfraError), sleep=lambda _seconds: None
        )
        task = Task(0, store(), output, engine)
        try:
            task.take(rows)
            task.end()
        except Bug:
            continue
        if platform.state.progress[0].next_offset == len(log):
            return
    raise AssertionError("it never came to an end")


errors = st.sampled_from([None, None, None, Unavailable, Bug])
script_errors = st.sampled_from([None, None, InfraError, Bug])


@LAW
@given(
    values=st.lists(st.integers(0, 50), min_size=1, max_size=25),
    stores=st.lists(errors, max_size=40),
    outputs=st.lists(errors, max_size=30),
    scripts=st.lists(script_errors, max_size=12),
)
def test_errors_of_every_class_at_any_call(
    values, stores, outputs, scripts, in_sandbox, caplog
) -> None:
    """What heals is waited for; what does not costs at most the record that met it."""
    platform = platform_with(values)
    caplog.clear()
    any_output_bug = Bug in outputs

    run(
        platform,
        {"javascript": Faulty(in_sandbox["javascript"], ("evaluate",), scripts)},
        lambda: Faulty(platform.partition_store(argument_names), STORE, stores),
        lambda: Faulty(platform.output(0), OUTPUT, outputs),
    )

    state = platform.state
    first = len(state.log[0]) - len(values)
    found = {
        first - 1 + row.timestamp for _p, row in state.updates.values() if row.position == 0
    }  # fmt: skip
    found |= {each.offset for each in state.dead_letters}
    # Where even the dead letter met a bug, an event says where in the log the record stands.
    named = {each.offset for each in caplog.records if each.message == "dead_letter_failed"}
    assert found | named >= set(range(first, first + len(values)))
    assert not named or any_output_bug


@pytest.mark.parametrize("place", [0, 3, 9])
def test_a_record_that_no_code_can_stand_is_left_out_alone(in_sandbox, place: int) -> None:
    values = list(range(10))
    values[place] = POISON
    platform = platform_with(values)

    run(
        platform,
        in_sandbox,
        lambda: PoisonedStore(platform.partition_store(argument_names)),
        lambda: platform.output(0),
    )

    stored = Counter(value_of(row.document) for _p, row in platform.state.updates.values())
    good = [each for each in values if each != POISON]
    assert stored == Counter([*good, *(each + 1 for each in good)])
    (letter,) = platform.state.dead_letters
    assert "Bug: cannot store this value" in letter.reason
