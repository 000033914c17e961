"""Trials of several tenants in one other process: nobody's waits until another's is over."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import orjson
import pytest
from engine_builders import a_service_object, document
from python_evaluator import PythonEvaluator

from api.stepping import answering
from api.stepping.answering import Answering
from api.trials.apart import MOST_OF_ONE, TrialsApart
from api.trials.stored import Reading, Stored
from api.trials.trial import Found, Trial, Update
from api.trials.trying import TrialsHere
from servioticy.apart.asking import OtherProcess
from servioticy.domain.access import Scope
from servioticy.domain.model import StreamRef
from servioticy.refusals import TooMany

LONG, SHORT = 60, 3


class ByTenant:
    """Many updates for the first tenant, few for the others."""

    def found(self, trial: Trial, _versions: object) -> Reading[Found]:
        yield from ()
        count = LONG if trial.caller == 1 else SHORT
        d = StreamRef("so", "d")
        updates = [Update(d, at, document(at), played=True) for at in range(1, count + 1)]
        return Found(updates, {}, [], complete=True)


class Here:
    """The other process, in this one; each step is one of the work's."""

    def __init__(self) -> None:
        evaluator = PythonEvaluator(lambda trigger, _values: trigger.timestamp)
        here = TrialsHere(cast(Stored, ByTenant()), evaluator)
        self._answering: Answering[Trial] = Answering(here, "try again")

    def ask(self, request: bytes) -> bytes:
        return self._answering.answer(request)


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> TrialsApart:
    monkeypatch.setattr(answering, "STEP_SECONDS", -1.0)
    return TrialsApart(cast(OtherProcess, Here()))


def trial(caller: int) -> Trial:
    made = [replace(a_service_object({"c": ["d"]}), inputs={}, read_in={})]
    return Trial(caller, Scope(), "so", made, made, 100, 100, 1_700_000_000_000)


def test_a_short_one_is_over_long_before_a_long_one_that_began_earlier(
    trials: TrialsApart,
) -> None:
    """A step of each in turn (`in_turns`, tests of searches): an update is one, and the end."""
    long, short = trials.steps(trial(1)), trials.steps(trial(2))
    told = [next(long)]
    answers = []
    for step in short:
        answers.append(step.documents)
        told.append(next(long))
    told += list(long)

    assert len(answers) == SHORT + 3
    assert len(told) == LONG + 3
    assert orjson.loads(answers[-1])["played"] == SHORT
    assert orjson.loads(told[-1].documents)["played"] == LONG


def test_of_one_tenant_a_few_are_under_way(trials: TrialsApart) -> None:
    begun = [trials.steps(trial(1)) for _ in range(MOST_OF_ONE)]
    for each in begun:
        next(each)
    with pytest.raises(TooMany, match="2 trials are under way already"):
        next(trials.steps(trial(1)))

    assert next(trials.steps(trial(2)))
