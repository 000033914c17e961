"""The random topologies of the benchmark have the numbers of the paper's Table 1."""

from __future__ import annotations

import pytest

from benchmarks.topologies import document
from benchmarks.topology import TABLE_1, Topology, topology


@pytest.fixture(params=TABLE_1)
def drawn(request: pytest.FixtureRequest) -> Topology:
    return topology(TABLE_1[request.param])


def test_it_has_the_numbers_of_the_table(drawn: Topology) -> None:
    """What is measured beside the paper must be what the paper measured."""
    wanted = drawn.numbers
    ins = [len(drawn.inputs(node)) for node in range(wanted.nodes)]
    outs = [len(drawn.outputs(node)) for node in range(wanted.nodes)]

    assert len(drawn.edges) == wanted.edges
    assert [n for n in ins if n == 0] == [0] * wanted.sources
    assert [n for n in outs if n == 0] == [0] * wanted.sinks
    assert max(ins) == wanted.max_in
    assert max(outs) == wanted.max_out


def test_it_is_one_component_without_cycles(drawn: Topology) -> None:
    """Edges lead on in the order of the nodes, and from any node to any other if turned."""
    reached, waiting = {0}, [0]
    while waiting:
        node = waiting.pop()
        new = {*drawn.inputs(node), *drawn.outputs(node)} - reached
        reached |= new
        waiting += new

    assert all(tail < head for tail, head in drawn.edges)
    assert len(reached) == drawn.numbers.nodes


def test_every_composite_hangs_on_a_source(drawn: Topology) -> None:
    """Else it would never compute, and its paths would not be measured."""
    sources = drawn.numbers.sources
    reached = set().union(*(drawn.reachable(source) for source in range(sources)))

    assert reached == set(range(sources, drawn.numbers.nodes))


def test_the_same_seed_gives_the_same_topology() -> None:
    """Two machines measure the same thing; another seed gives another one."""
    assert topology(TABLE_1[3], 7) == topology(TABLE_1[3], 7)
    assert topology(TABLE_1[3], 7) != topology(TABLE_1[3], 8)


def test_its_document_reads_what_the_edges_say(drawn: Topology) -> None:
    """Each composite's arguments are its inputs, groups for sources."""
    sources = [f"so{number}" for number in range(drawn.numbers.sources)]

    body = document(drawn, sources)

    code = {name: each["channels"]["v"]["current-value"] for name, each in body["streams"].items()}
    for node in range(drawn.numbers.sources, drawn.numbers.nodes):
        names = [f"n{each}" for each in drawn.inputs(node)]
        assert code[f"n{node}"].startswith(f"function({','.join(names)}){{")
