"""What holds of a platform whose definitions change: it has what follows from its log."""

from __future__ import annotations

from collections import Counter

from changing_world import World
from crossing_oracle import assert_at_rest, assert_crossings
from log_oracle import HELD, Beyond, LogOracle, value_of
from oracle import Limits as OracleLimits

from sandbox import argument_names
from servioticy.domain.model import StreamKey


def oracle_of(world: World) -> LogOracle:
    """What follows from the log as it stands now."""
    rows = world.platform.state.service_objects
    beyond = Beyond(
        {id_: [thing for thing, _ in each] for id_, each in world.versions.items()},
        world.tenants,
        world.given,
        {id_: rows[id_].sequence for id_ in world.versions},
        world.snapshots,
    )
    log = [[r for _, r in world.platform.records(n)] for n in range(world.partitions)]
    limits = world.limits
    bounds = OracleLimits(limits.hops, limits.computations, limits.tree_bytes)
    return LogOracle(log, beyond, bounds).run()


def assert_lawful(world: World) -> LogOracle:
    """All that there is follows from the log, and what crosses borders from other tenants' trees.

    Every partition has worked on all of its log.
    """
    assert not world.leaks
    oracle = oracle_of(world)
    assert_equal_for_readers(world, oracle)
    purge(world)
    assert_equal_to_oracle(world, oracle)
    assert set(world.put_there) == set(oracle.taken), "nothing that was accepted is lost"
    assert_crossings(oracle)
    assert_at_rest(oracle)
    return oracle


def assert_equal_for_readers(world: World, oracle: LogOracle) -> None:
    """Though what is deleted or erased may still have rows."""
    history = world.platform.history
    found = {
        (ref, row.timestamp): value_of(row.document)
        for ref, number in world.platform.state.streams.items()
        for row in history.page(StreamKey(world.tenant_of(ref[0]), number), (0, 9999), 9999, 10**9)
    }
    assert found == oracle.stored


def purge(world: World) -> None:
    store = world.platform.partition_store(argument_names)
    for number in range(world.partitions):
        while store.purge(number, 999, 10**9) is not None:
            pass


def assert_equal_to_oracle(world: World, oracle: LogOracle) -> None:
    state = world.platform.state
    names = state.readable()
    rows = [row for _partition, row in state.updates.values()]

    assert {(names[r.stream_id], r.timestamp): value_of(r.document) for r in rows} == oracle.stored
    assert {(names[r.stream_id], r.timestamp): r.version for r in rows} == oracle.made_by
    lasts = {
        names[s]: (row.timestamp, value_of(row.document)) for s, row in state.last_updates.items()
    }
    assert lasts == {ref: update for ref, update in oracle.last.items() if len(ref) == 2}
    verdicts = Counter({(names[s], v): times for (s, v), (times, _) in state.verdicts.items()})
    assert verdicts == oracle.verdicts
    letters = {(each.partition, each.offset) for each in state.dead_letters}
    assert len(letters) == oracle.dead
    for number in range(world.partitions):
        emitted = [
            ((each.service_object, each.stream), each.timestamp, value_of(bytes(each.update)))
            for partition, each in state.emitted_to
            if partition == number
        ]
        trees = {key: made for key, made in oracle.trees.items() if key[0][0] % HELD == number}
        order = [each for key in sorted(trees) for each in trees[key]]
        if world.crashes == 0 and not oracle.was_held and not world.puts_off:
            assert emitted == order
        assert set(emitted) == set(order), "each at least once, whatever was stored over it"
