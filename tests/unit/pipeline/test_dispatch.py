"""Stage 1 by itself: which trees enter a region, and whom they do not wake."""

from __future__ import annotations

from engine_builders import D, a_graph, document, logged

from pipeline.limits import NO_LIMITS
from pipeline.sharing.rules import Rules, its_quota
from pipeline.sharing.spending import Spending
from pipeline.stages.dispatch import MAX_SHED_NOTED, NOBODY, dispatch
from pipeline.work import LoggedUpdate, Root
from sandbox.trees import Event
from servioticy.domain.borders import BORDER, MAX_BORDERS
from servioticy.domain.known_streams import Region
from servioticy.domain.model import StreamRef

ALL = Rules(NO_LIMITS)


def spending() -> Spending:
    return Spending(NO_LIMITS, 2)


def an_event(node: int, *path: int, at: int = 1) -> Event:
    return Event(node, at, document(at), path)


def number_of(region: Region, name: str) -> int:
    return next(
        n for n, each in enumerate(region.streams) if each is not None and each.key == name
    )


def test_trees_come_in_order_of_the_log_and_each_breadth_first() -> None:
    """Whatever the order in which regions before have made what comes in."""
    (region,) = a_graph({"c": ("d",)}).regions()
    d = number_of(region, "so/d")
    last, first = an_event(d, 0, 1), an_event(d, 2)
    entered = {region: {1: [last, first], 0: [an_event(d)]}}

    ((found, numbers, trees),), ended = dispatch(
        entered, [logged(5, 1), logged(6, 1)], ALL, spending()
    )

    assert found is region
    assert numbers == [0, 1]
    assert trees == [[an_event(d)], [first, last]]
    assert ended == []


def test_a_region_in_which_nobody_is_woken_has_nothing_to_do() -> None:
    """A direct write of what nobody reads is stored, and that is all."""
    (region,) = a_graph({"c": ("d",)}).regions()
    entered = {region: {0: [an_event(number_of(region, "so/c"))]}}

    assert dispatch(entered, [logged(1, 1)], ALL, spending()) == ([], [])


def reading(*names: str) -> Region:
    """Composites that read what comes over a border."""
    (region,) = a_graph(dict.fromkeys(names, ("d",))).regions()
    return region


def crossed(offset: int, at: int, borders: int = 1) -> LoggedUpdate:
    """An update of another tenant that has come over borders."""
    root = Root(D, at, document(at), (*range(BORDER, BORDER + borders),))
    return LoggedUpdate(offset, 1, [root], b"", tree=1)


def test_who_is_refused_sees_what_it_reads_and_wakes_by_its_own_updates() -> None:
    region = reading("x")
    d = number_of(region, "so/d")
    entered = {region: {0: [an_event(d)], 1: [an_event(d, at=2)]}}
    rules = Rules(NO_LIMITS, refused={1: its_quota("computations")})

    ((_region, numbers, trees),), (verdict,) = dispatch(
        entered, [crossed(1, 1), logged(2, 2)], rules, spending()
    )

    assert numbers == [0, 1]
    assert [event.only for tree in trees for event in tree] == [NOBODY, None]
    assert (verdict.composite.ref, verdict.kind) == (StreamRef("so", "x"), "over-quota")
    assert (verdict.trigger.key, verdict.timestamp) == ("so/d", 1)
    assert "quota of computations" in verdict.message


def test_what_has_crossed_eight_borders_is_far_enough() -> None:
    """A loop of tenants whose clocks tick on by themselves ends."""
    region = reading("x")
    entered = {region: {n: [an_event(number_of(region, "so/d"))] for n in (0, 1)}}

    (_entering,), (verdict,) = dispatch(
        entered, [crossed(1, 1, MAX_BORDERS), crossed(2, 1, MAX_BORDERS + 1)], ALL, spending()
    )

    assert verdict.kind == "hop-limit"


def test_only_the_first_refused_composites_get_a_verdict() -> None:
    region = reading(*(f"x{number}" for number in range(MAX_SHED_NOTED + 5)))
    entered = {region: {0: [an_event(number_of(region, "so/d"))]}}

    rules, spent = Rules(NO_LIMITS, refused={1: its_quota("computations")}), spending()
    entering, ended = dispatch(entered, [crossed(1, 1)], rules, spent)

    assert entering == []
    assert len(ended) == MAX_SHED_NOTED
    assert spent.work == 2 + MAX_SHED_NOTED, "and pays for them"
