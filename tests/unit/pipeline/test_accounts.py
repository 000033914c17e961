"""What streams have used: all of it once, whoever has woken what."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import msgspec
from engine_builders import C, D, document
from hypothesis import given
from hypothesis import strategies as st
from neighbours import Neighbours
from oracle import Oracle
from serial_order import LAW, Generous, graphs, histories, platform_with

from pipeline.accounting.accounts import Accounts
from pipeline.accounting.metering import Meter
from pipeline.accounting.splitting import MAX_SOURCES
from pipeline.engine import Engine
from pipeline.growth import NewRow, Verdict
from pipeline.sharing.fairness import Fairness
from pipeline.task import Task
from pipeline.work import Row
from sandbox import argument_names
from servioticy.domain.known_streams import KnownStream
from servioticy.domain.model import StreamRef
from servioticy.domain.records import UpdateRecord
from servioticy.ports.accounts import Use, UseKey


@LAW
@given(data=st.data())
def test_accounts_tell_all_that_is_stored_and_computed(data, evaluators) -> None:
    """However it is batched."""
    objects, codes = data.draw(graphs(cycles=False))
    history = data.draw(histories(objects))
    cut = data.draw(st.integers(0, len(history)))
    oracle = Oracle(objects)
    for ref, timestamp, value in history:
        oracle.take(ref, timestamp, value)

    platform = platform_with(objects, codes)
    for (owner, name), timestamp, value in history:
        body = {"channels": {"v": {"current-value": value}}, "lastUpdate": timestamp}
        update = msgspec.Raw(json.dumps(body, separators=(",", ":")).encode())
        platform.log.append(0, UpdateRecord(owner, name, timestamp, update))
    engine = Engine(evaluators(objects), 1000, 1000)
    store = platform.partition_store(argument_names)
    fairness = Fairness(Generous(1.0))
    task = Task(0, store, lambda: platform.output(0), engine, fairness, Meter(dict))
    rows = [Row(offset, value) for offset, value in enumerate(platform.state.log[0])]
    for some in (rows[:cut], rows[cut:]):
        task.take(some)
        task.end()

    rows_of, updates, computations, sizes = Counter(), Counter(), Counter(), Counter()
    tenants = {each.id: platform.state.service_objects[each.id].tenant for each in objects}
    for (tenant, owner, name, provider), account in platform.state.accounts.items():
        ref = owner, name
        assert tenant == provider == tenants[owner]
        rows_of[ref] += account.pop("rows")
        updates[ref] += account.pop("updates")
        sizes[ref] += account.pop("bytes")
        assert account.pop("microseconds") == 0
        computations.update({(ref, verdict): times for verdict, times in account.items()})
    assert min(sizes.values(), default=0) >= 0
    assert +rows_of == Counter(ref for ref, _, _ in oracle.order)
    assert +updates == Counter(ref for ref, _, _ in history)
    assert +computations == oracle.verdicts


def test_who_computes_over_others_streams_pays_for_what_comes_of_it() -> None:
    """The provider's stream is named by itself, whichever of them reads it."""
    world = Neighbours()
    world.define("p", "x", "s")
    for reader in "ab":
        world.define("q", reader, "own", c=("x/s",), e=("c",))
    world.run()
    world.put("x/s", 1)
    world.put("x/s", 0)
    world.run()
    accounts = Accounts()
    for each in world.tasks:
        accounts.add(each._begun.partition.accounts)

    provider, tenant, size = world.tenant("p"), world.tenant("q"), len(UPDATE)
    source = StreamRef("x", "s")
    found = uses(accounts)
    assert {type(ref) for each in found for ref in (each.stream, each.source)} == {StreamRef}
    assert [each for each in found if each.tenant == provider] == [
        Use(provider, source, provider, updates=2, rows=2, bytes=2 * size)
    ]
    for reader in "ab":
        c, e = (StreamRef(reader, name) for name in "ce")
        ended = {"emitted": 1, "stale": 1}
        assert [each for each in found if each.stream.service_object == reader] == [
            Use(tenant, c, provider, source, rows=1, bytes=size, computations=ended),
            Use(tenant, e, tenant, rows=1, bytes=size, computations={"emitted": 1}),
        ]


UPDATE = b'{"channels":{"v":{"current-value":1}},"lastUpdate":1}'
OWN = KnownStream(C, 7, 1, 3, None)
THEIRS = KnownStream(D, 8, 1, 4, None)
FX = StreamRef("f", "x")


def uses(accounts: Accounts) -> list[Use]:
    """What is to be stored, in order."""
    found: dict[UseKey, Use] = {}
    accounts.add_to(found)
    return [found[key] for key in sorted(found)]


def a_row(stream: KnownStream, *path: int) -> NewRow:
    return stream, 1, document(1), 0, len(path), path


def test_the_consumer_pays_and_the_provider_is_told() -> None:
    accounts, size = Accounts(), len(document(1))
    ended = [Verdict(OWN, "emitted", THEIRS, 1, times=2), Verdict(OWN, "stale", OWN, 1)]

    accounts.note([a_row(THEIRS), a_row(OWN, 0), a_row(OWN, 0)], ended)

    assert uses(accounts) == [
        Use(7, C, 7, computations={"stale": 1}),
        Use(7, C, 8, D, rows=2, bytes=2 * size, computations={"emitted": 2}),
        Use(8, D, 8, updates=1, rows=1, bytes=size),
    ]


def test_what_is_stored_of_it_is_split_as_who_woke_it() -> None:
    """What came from outside, and was woken by its own, is its own; so is what cannot be split."""
    accounts, third = Accounts(), KnownStream(FX, 9, 1, 5, None)
    ended = [Verdict(OWN, "emitted", THEIRS, 1), Verdict(OWN, "emitted", OWN, 1)]
    ended += [Verdict(OWN, "emitted", third, 1, times=2), Verdict(OWN, "filtered", third, 1)]
    rows = [(OWN, at, b"1234567", at, 1, (0,)) for at in range(4)]

    accounts.note([*rows, (OWN, 9, b"1234567", 9, 0, ())], ended)

    assert uses(accounts) == [
        Use(7, C, 7, updates=1, rows=2, bytes=14, computations={"emitted": 1}),
        Use(7, C, 8, D, 0, 1, 7, {"emitted": 1}),
        Use(7, C, 9, FX, 0, 2, 14, {"emitted": 2, "filtered": 1}),
    ]


def test_so_many_streams_of_others_are_told_apart_and_all_are_counted() -> None:
    accounts = Accounts()
    others = [KnownStream(StreamRef("d", str(n)), 8, 1, n, None) for n in range(MAX_SOURCES + 2)]
    accounts.note([], [Verdict(OWN, "filtered", each, 1) for each in others])

    found = uses(accounts)
    assert len(found) == MAX_SOURCES + 1
    assert found[0] == Use(7, C, 8, computations={"filtered": 2})


def test_what_takes_the_place_of_something_is_told_with_that() -> None:
    """A stream is in a batch more than once, and under two versions, perhaps."""
    accounts, size = Accounts(), len(document(1))
    newer = replace(OWN, version=2)

    accounts.note([a_row(OWN), a_row(newer), a_row(THEIRS)], [], {OWN.stream_id: 2 * size})

    assert uses(accounts) == [
        Use(7, C, 7, updates=2, rows=2, bytes=2 * size, replaced=2 * size),
        Use(8, D, 8, updates=1, rows=1, bytes=size),
    ]


def test_what_was_taken_is_not_there_again() -> None:
    accounts = Accounts()
    accounts.note([a_row(THEIRS)], [])
    taken = accounts.take()
    accounts.note([a_row(THEIRS), a_row(THEIRS)], [])

    assert [each.updates for each in uses(taken)] == [1]
    assert [each.updates for each in uses(accounts)] == [2]


def test_what_was_counted_elsewhere_is_added() -> None:
    """As if it had been counted here."""
    first, second = Accounts(), Accounts()
    ended = [Verdict(OWN, "emitted", THEIRS, 1), Verdict(OWN, "filtered", THEIRS, 1)]
    for each in (first, second):
        each.note([a_row(THEIRS), a_row(OWN, 0)], ended, {OWN.stream_id: 7})
    first.add(second)
    both = Accounts()
    for _ in range(2):
        both.note([a_row(THEIRS), a_row(OWN, 0)], ended, {OWN.stream_id: 7})

    assert uses(first) == uses(both)
    assert uses(first) == [
        Use(7, C, 7, replaced=14),
        Use(7, C, 8, D, 0, 2, 2 * len(document(1)), {"emitted": 2, "filtered": 2}),
        Use(8, D, 8, updates=2, rows=2, bytes=2 * len(document(1))),
    ]


def test_what_is_taken_back_without_a_word_is_a_row_less() -> None:
    accounts, size = Accounts(), len(document(1))

    accounts.note([], [], {OWN.stream_id: size}, [a_row(OWN)])

    assert uses(accounts) == [Use(7, C, 7, replaced=size)]
