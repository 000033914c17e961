"""Streams that follow revisions: what a document may say, and inputs as they were."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bad_documents import refusal, resolved

from api.backfills.region import Concerned
from api.trials.version import Version
from sandbox.text import argument_names
from sandbox.trees import CLOCK, FOLLOWERS, FOLLOWS, Event, Kept, Last, Node, Wake
from servioticy.domain.documents import parse_service_object
from servioticy.domain.evaluators.evaluator import Lacking
from servioticy.domain.evaluators.following import COUNT, MAX_STREAMS, Following
from servioticy.domain.evaluators.operators import Answer, Ends, Entries, Step
from servioticy.domain.evaluators.past import (
    Happened,
    Moment,
    Past,
    PastKey,
    PastUpdate,
    answer,
)
from servioticy.domain.evaluators.stepwise import is_woken
from servioticy.domain.graph import Graph
from servioticy.domain.model import ServiceObject, StreamRef, WindowRef
from servioticy.domain.operator_code import OperatorCode
from servioticy.domain.windowed import FOLLOWING, FollowedBy, as_one, parts

CODE = "function(hour, price){return 1}"
HERE = (1, 0, ())


def document(code: str = CODE, **more: Any) -> dict[str, Any]:
    sum_ = {"type": "number", "current-value": "function(meter){return meter.sum('v')}"}
    window = {"type": "tumbling", "size": "1h", "lateness": "1d"}
    return {
        "version": "0.2.0",
        "streams": {
            "meter": {"channels": {"v": {"type": "number"}}},
            "price": {"channels": {"v": {"type": "number"}}},
            "hour": {"window": window, "channels": {"v": sum_}},
            "cost": {
                "channels": {"v": {"type": "number", "current-value": code}},
                "follow": True,
                **more,
            },
        },
    }


def test_it_is_computed_as_itself_and_what_brings_its_inputs() -> None:
    definition = parse_service_object(document(), "so", argument_names)
    (cost,) = [each for each in definition.streams if each.ref.stream == "cost"]
    brings, itself = parts(cost)

    assert itself == cost
    assert brings.ref == WindowRef("so", "cost")
    assert brings.composite is not None and cost.composite is not None
    assert brings.composite.evaluator == FOLLOWING
    assert brings.composite.operator == FollowedBy((("so/hour",), ("so/price",)), skips=False)
    assert cost.composite.own is None


def test_updates_wake_itself_and_revisions_what_brings_them() -> None:
    definition = parse_service_object(document(), "so", argument_names)
    created = ServiceObject(definition, 1, 1, 1, {})
    graph = Graph([created])
    cost = graph.stream(StreamRef("so", "cost"))
    graph.regions()

    assert cost.revises and cost.region is not None
    woken = [wake.composite for wake in graph.wakes(StreamRef("so", "price"))]
    assert woken == [WindowRef("so", "cost"), StreamRef("so", "cost")]
    (wake,) = graph.wakes(WindowRef("so", "cost"))
    assert wake == (StreamRef("so", "cost"), FOLLOWS)
    assert not Graph([as_one(created)]).knows(WindowRef("so", "cost"))


def test_history_has_nothing_to_follow() -> None:
    """Trials and backfills leave out what would be woken by revisions."""
    definition = parse_service_object(document(), "so", argument_names)
    created = ServiceObject(definition, 1, 1, 1, {})
    concerned = Concerned([created], StreamRef("so", "cost"))
    version = Version([created], "so")

    assert concerned.computed == {StreamRef("so", "cost")}
    regions = [concerned.before_windows(), version.region()]
    for region in regions:
        assert region is not None
        names = [each.ref for _, each in region.composites()]
        assert WindowRef("so", "cost") not in names
        assert StreamRef("so", "cost") in names
    assert concerned.behind_windows() is None


def test_a_time_that_a_version_before_has_set_comes_once() -> None:
    """It is nothing to this one, and is not to come again and again."""
    nodes = (Node((Wake(0, 1, CLOCK), Wake(1, 1, 0))), Node(follows=True))
    clock, other = nodes[0].wakes
    tick = Event(0, 5, b"w")
    assert is_woken(tick, clock, nodes)
    assert not is_woken(tick, other, nodes)
    assert is_woken(tick._replace(only=FOLLOWERS), other, nodes)


@pytest.mark.parametrize(
    ("more", "pointer", "words"),
    [
        ({"follow": "yes"}, "/streams/cost/follow", "has to be true or false"),
        ({"follow": 1}, "/streams/cost/follow", "has to be true or false"),
        ({"window": {"type": "global"}}, "/streams/cost/follow", "of its own"),
        ({"silent": "10m"}, "/streams/cost/follow", "of its own"),
        ({"diamonds": "settle"}, "/streams/cost/follow", "beside diamonds"),
        ({"code": "function(hour, cost){return 1}"}, "/streams/cost/follow", "'cost', its own"),
        ({"channels": {"v": {"type": "number"}}}, "/streams/cost/follow", "current-value"),
    ],
)
def test_where_it_makes_no_sense_it_is_refused(
    more: dict[str, Any], pointer: str, words: str
) -> None:
    content = document(**more) if "code" not in more else document(more["code"])
    error = refusal(content)
    assert error is not None
    assert error.pointer == pointer
    assert words in str(error)
    resolved(error.pointer, content)


def test_beside_a_program_it_is_refused() -> None:
    operator = {"name": "filter", "version": 1}
    error = refusal(document(channels={"v": {"type": "number"}}, operator=operator))
    assert error is not None
    assert (error.code, error.pointer) == ("bad-operator", "/streams/cost/follow")


@pytest.mark.parametrize("value", [False, None])
def test_false_is_as_if_it_were_not_there(value: Any) -> None:
    for content in (document(follow=value), document(follow=value, window={"type": "global"})):
        assert refusal(content) is None


class Followed:
    """The operator, with what history has of `a` and `b`."""

    def __init__(self, *inputs: tuple[str, ...], skips: bool = False) -> None:
        self.code = OperatorCode(FollowedBy(inputs or (("a",), ("b",)), skips), ("a", "b"), ())
        self.stored: dict[tuple[str, int], Any] = {}
        self.happened = Happened()
        self.count: bytes | None = None

    def comes(self, at: int, mark: str = ',"revision":9', argument: int = 0) -> Answer:
        text = f'{{"channels":{{"v":{{"current-value":1}}}},"lastUpdate":{at}{mark}}}'
        known: dict[tuple[int, bytes], Kept] = {}
        for _ in range(9):
            entries = Entries(0, known)
            past = Past(entries.get, Moment(self.happened, HERE))
            last = Last(1, at, text.encode())
            step = Step(self.code, 0, argument, last, None, "a", (), None, past=past)
            try:
                found = Following().step(step, entries)
            except Lacking as lacking:
                for _node, key in lacking.keys:
                    known[0, key] = Kept(0, key, self._known(key))
                continue
            self.count = next(each.value for each in entries.changed if each.key == COUNT)
            return found
        raise AssertionError("it never knows enough")

    def _known(self, key: bytes) -> bytes | None:
        if not isinstance(key, PastKey):
            return self.count
        wanted = key.wanted
        assert wanted.is_newest
        found = {}
        for (name, at), value in sorted(self.stored.items()):
            if name in wanted.streams and at <= wanted.until:
                found[name] = PastUpdate(name, at, json.dumps(value).encode())
        return None if "others" in wanted.streams else answer(found.values())


def brought(found: Answer) -> Any:
    (output,) = found.outputs
    document = json.loads(output.document)
    assert document["lastUpdate"] == output.timestamp
    return [each and each["value"] for each in document["windows"]]


def test_other_inputs_are_as_they_were_then() -> None:
    followed = Followed()
    followed.stored = {("b", 1): "early", ("b", 5): "then", ("b", 9): "later"}
    for at, value in ((5, "then"), (8, "then"), (4, "early"), (0, None)):
        one, other = brought(followed.comes(at))
        assert (one["lastUpdate"], other) == (at, value)


def test_what_has_happened_since_the_store_was_asked_counts() -> None:
    followed = Followed()
    followed.stored = {("b", 5): "stored"}
    followed.happened.note("b", 5, b'"again"', HERE)
    followed.happened.note("b", 7, b'"new"', HERE)
    assert [brought(followed.comes(at))[1] for at in (4, 6, 7)] == [None, "again", "new"]


def test_what_was_taken_back_since_is_not_there() -> None:
    """Then it is what the input had before, as far back as that goes."""
    followed = Followed()
    followed.stored = {("b", 2): "two", ("b", 5): "five", ("b", 6): "six"}
    for at in (6, 5):
        followed.happened.note("b", at, b"", HERE)
    assert [brought(followed.comes(at))[1] for at in (7, 4, 1)] == ["two", "two", None]
    followed.happened.note("b", 5, b'"again"', HERE)
    assert brought(followed.comes(7))[1] == "again"


def test_of_a_group_it_is_the_newest_by_then() -> None:
    followed = Followed(("a",), ("b", "c"))
    followed.stored = {("b", 5): "b5", ("c", 3): "c3", ("c", 6): "c6", ("b", 6): "b6"}
    assert [brought(followed.comes(at))[1] for at in (4, 5, 6)] == ["c3", "b5", "b6"]


def test_each_has_a_greater_number_and_says_what_it_is() -> None:
    followed = Followed()
    first, second = followed.comes(5), followed.comes(4, ',"revision":2,"retracted":true')
    assert first.outputs[0].document.endswith(b'"argument":0,"lastUpdate":5,"revision":1}')
    assert second.outputs[0].document.endswith(b'"lastUpdate":4,"revision":2,"retracted":true}')


@pytest.mark.parametrize(
    ("followed", "kind"),
    [
        (Followed(skips=True), "missing"),
        (Followed(("a",), ("others",)), "error"),
        (Followed(("a",), tuple(f"b{n}" for n in range(MAX_STREAMS + 1))), "error"),
    ],
)
def test_where_inputs_are_not_known_it_ends(followed: Followed, kind: str) -> None:
    with pytest.raises(Ends) as ended:
        followed.comes(5)
    assert ended.value.kind == kind
