"""Ids of wirings: a sandbox takes what has an id that it knows for what it knows."""

from __future__ import annotations

from dataclasses import fields, replace
from types import SimpleNamespace

import pytest

from sandbox.trees import Node, Wake
from servioticy.domain.wirings import wiring

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
