"""Which functions a pointcut names, and what becomes of them."""

from __future__ import annotations

import importlib
import inspect
import os

import pytest
import woven_steps

from monitoring.configuration import Aspect
from monitoring.outbox import Outbox
from monitoring.pointcuts import POINTCUTS, named
from monitoring.weaving.places import places
from monitoring.weaving.trampoline import parameters
from monitoring.weaving.weaver import Weaver

NAME = woven_steps.__name__


def found(pattern: str) -> dict[str, str]:
    return {each.name.removeprefix(f"{NAME}."): each.why for each in places(f"{NAME}.{pattern}")}


def test_a_glob_names_the_functions_of_a_module_and_of_its_classes() -> None:
    """No others that it has imported, and no classes."""
    own = ["cached", "fails", "first", "later", "turns", "whole"]

    assert found("*") == dict.fromkeys(own, "")
    assert found("Table.s*") == {"Table.second": "", "Table.steps": ""}
    assert found("?i*t") == {"first": ""}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nothing", f"{NAME} has no nothing"),
        ("Table.nothing", f"{NAME}.Table has no nothing"),
        ("Table", "it is a class: name a method of it"),
        ("part", "it is a partial: name the function of it"),
        ("length", "it is not written in Python: there is no code to weave into"),
        ("TABLE", "it is no function"),
    ],
)
def test_where_nothing_can_be_woven_it_is_said_why(name: str, why: str) -> None:
    assert found(name) == {name: why}


def test_a_module_that_is_not_loaded_has_no_place_and_is_not_loaded_for_it() -> None:
    assert places("antigravity.geohash") == []
    assert places(f"{NAME}_of_others.first") == []


def test_what_measures_is_never_woven() -> None:
    (place,) = places("monitoring.pointcuts.named")

    assert place.function is None


@pytest.mark.parametrize("step", POINTCUTS, ids=lambda each: each.name)
def test_each_named_step_is_there_with_its_sequence(step) -> None:
    """A function that moves takes its name along."""
    parts = step.function.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            importlib.import_module(".".join(parts[:count]))
            break
        except ModuleNotFoundError:
            continue
    (place,) = places(step.function)

    assert place.function is not None, place.why
    if step.sequence:
        assert step.sequence.split(".")[0] in parameters(place.function.__code__)


def test_names_of_steps_come_before_those_of_functions() -> None:
    stages = ["dispatch", "fetch", "transform", "emit"]

    assert [each.name for each in named("pipeline.stages.*")] == [
        f"pipeline.stages.{each}" for each in stages
    ]
    assert [each.name for each in named("pipeline.*")] == [
        f"pipeline.{each}" for each in ("batch", "piece", "emission")
    ]
    assert named(f"{NAME}.*") == []


def test_a_function_is_woven_once_by_the_first_that_names_it() -> None:
    weaver, before = Weaver("-"), woven_steps.first.__code__
    one, other = weaver.weave([Aspect(f"{NAME}.first"), Aspect(f"{NAME}.f*")], Outbox())
    weaver.unweave()

    assert (one.woven, one.not_woven) == (1, {})
    assert other.woven == 1
    assert other.not_woven == {
        f"{NAME}.first": f"it is woven by the pointcut {NAME}.first",
    }
    assert woven_steps.first.__code__ is before


def test_another_configuration_weaves_anew_only_what_differs() -> None:
    weaver, outbox = Weaver("-"), Outbox()
    codes = {each: getattr(woven_steps, each).__code__ for each in ("first", "turns", "whole")}

    def now() -> dict[str, object]:
        return {each: getattr(woven_steps, each).__code__ for each in codes}

    weaver.weave([Aspect(f"{NAME}.first"), Aspect(f"{NAME}.turns")], outbox)
    one = now()
    weaver.weave([Aspect(f"{NAME}.first"), Aspect(f"{NAME}.turns", sample=0.5)], outbox)
    other = now()
    weaver.weave([], outbox)

    assert one["first"] is other["first"] is not codes["first"]
    assert codes["turns"] is not one["turns"] is not other["turns"] is not codes["turns"]
    assert one["whole"] is codes["whole"]
    assert now() == codes


def test_what_somebody_else_has_put_there_meanwhile_stays() -> None:
    weaver, before = Weaver("-"), woven_steps.first.__code__
    weaver.weave([Aspect(f"{NAME}.first")], Outbox())
    woven_steps.first.__code__ = other = woven_steps.first.__code__.replace(co_name="other")
    weaver.unweave()
    seen, woven_steps.first.__code__ = woven_steps.first.__code__, before

    assert seen is other


def test_a_fork_is_not_woven() -> None:
    """Nobody publishes there what it would measure."""
    weaver, before = Weaver("-"), woven_steps.first.__code__
    weaver.weave([Aspect(f"{NAME}.first")], Outbox())
    child = os.fork()
    if not child:
        os._exit(0 if woven_steps.first.__code__ is before else 1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    weaver.unweave()

    assert code == 0


def test_a_recursion_may_go_half_as_deep() -> None:
    """Each call is two frames: who weaves a deep one has to know it."""
    weaver = Weaver("-")
    weaver.weave([Aspect(f"{NAME}.turns")], Outbox())
    try:
        assert woven_steps.turns(300) == 0
        with pytest.raises(RecursionError):
            woven_steps.turns(700)
    finally:
        weaver.unweave()

    assert woven_steps.turns(700) == 0


def test_the_signature_of_a_cached_function_is_its_own() -> None:
    """What is woven is the function within: a call that the cache answers is none."""
    weaver, outbox = Weaver("-"), Outbox()
    before = inspect.signature(woven_steps.cached)
    weaver.weave([Aspect(f"{NAME}.cached")], outbox)
    woven_steps.cached.cache_clear()
    answers = [woven_steps.cached(1) for _ in range(3)]
    signature = inspect.signature(woven_steps.cached)
    weaver.unweave()

    assert answers == [1, 1, 1]
    assert len(outbox.take(10)) == 1
    assert signature == before
