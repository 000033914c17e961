"""Ids of wirings: a sandbox takes what has an id that it knows for what it knows."""

from __future__ import annotations

from dataclasses import fields, replace
from types import SimpleNamespace

import pytest

from sandbox.trees import Node, Wake
from servioticy.domain.pauses import PACES
from servioticy.domain.wirings import made_wiring, wiring

OTHERWISE = {
    "wakes": (Wake(0, 0, 0),),
    "code": SimpleNamespace(id="a program"),
    "inputs": ((1,),),
    "own": 0,
    "settles": True,
    "by_input": True,
    "skips": True,
    "name": "stream",
    "keeps": True,
    "windowed": True,
    "reads": False,
    "apart": True,
    "follows": True,
    "brings": True,
    "sides": (1,),
    "read_as": 7,
}


@pytest.mark.parametrize("name", [each.name for each in fields(Node)])
def test_whatever_a_node_says_is_in_the_id(name: str) -> None:
    """An option that is not would be computed as the first one that was met."""
    assert wiring((replace(Node(), **{name: OTHERWISE[name]}),)).id != wiring((Node(),)).id


@pytest.mark.parametrize("name", ["wakes", "inputs"])
def test_one_node_with_thousands_of_others_has_pauses(name: str) -> None:
    """A stream that 13,500 composites read took ten milliseconds in one step."""
    many = tuple(Wake(n, n, 0) for n in range(3 * PACES))
    thousands = {"wakes": many, "inputs": (tuple(range(3 * PACES)),)}
    node = replace(Node(), **{name: thousands[name]})

    assert sum(1 for _ in made_wiring((node,))) - sum(1 for _ in made_wiring((Node(),))) == 2
    shorter = replace(Node(), wakes=many[:-1], inputs=(tuple(range(3 * PACES - 1)),))
    assert wiring((node,)).id != wiring((replace(node, **{name: getattr(shorter, name)}),)).id
