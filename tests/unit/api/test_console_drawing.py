"""A workflow as it is drawn at the console: its boxes, and what stands in them."""

from __future__ import annotations

from typing import Any

import pytest
from workflow_builders import a_document

from api.console.drawing import SINK, SOURCE, drawing

PLACE = {"serviceObject": "x", "stream": "air"}


@pytest.mark.parametrize(
    ("end", "kind", "about"),
    [
        (SOURCE, {"http": {}}, "by HTTP"),
        (SOURCE, {"stream": PLACE}, "stream air"),
        (SOURCE, {"files": {"store": "in", "format": "csv"}}, "csv of in"),
        (SINK, {"collect": {}}, "collected"),
        (SINK, {"stream": PLACE}, "stream air"),
        (SINK, {"callback": {"url": "https://x"}}, "a callback"),
        (SINK, {"none": {}}, "nowhere"),
        (SINK, {"of a later release": {}}, ""),
    ],
)
def test_an_end_says_what_it_is(end: str, kind: dict[str, Any], about: str) -> None:
    drawn = drawing(a_document(**{end: kind}), {})
    (step,) = [each for each in drawn.steps if each.name == end]
    assert (step.about, step.is_procedure, step.is_wrong) == (about, False, False)


def test_a_step_says_what_waits_and_where_atoms_have_died() -> None:
    status = {
        "clean": {"waiting": 3, "deadLetters": 0},
        "sort": {"waiting": 0, "deadLetters": 1},
    }
    drawn = drawing(a_document("clean", "sort"), status)
    told = {each.name: (each.waiting, each.is_wrong) for each in drawn.steps}
    assert told == {
        "source": (None, False),
        "clean": (3, False),
        "sort": (0, True),
        "sink": (None, False),
    }
    assert drawn.links == [("source", "clean"), ("clean", "sort"), ("sort", "sink")]
