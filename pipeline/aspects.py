"""The four stages as a value, and what can be put around them without their knowing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar

from pipeline.growth import Asked, Entered, Entering, Keeping, RegionOutput, Verdict
from pipeline.sharing.rules import Rules
from pipeline.sharing.spending import Spending
from pipeline.stages.dispatch import dispatch
from pipeline.stages.emit import emit
from pipeline.stages.fetch import LastUpdates, fetch
from pipeline.stages.transform import transform
from pipeline.state.base import Base
from pipeline.state.batch import BatchState
from pipeline.state.decided import Decided
from pipeline.work import LoggedUpdate, Work
from servioticy.domain.evaluators.evaluator import Evaluators
from servioticy.domain.graph import Graph
from servioticy.ports.output import Output

Dispatch: TypeAlias = Callable[
    [Entered, Sequence[LoggedUpdate], Rules, Spending],
    tuple[list[Entering], list[Verdict]],
]
Fetch: TypeAlias = Callable[
    [Sequence[Entering], Sequence[LoggedUpdate], Graph, LastUpdates, Rules, Keeping],
    list[Asked],
]
Transform: TypeAlias = Callable[
    [
        Sequence[Asked],
        Sequence[LoggedUpdate],
        Evaluators,
        Decided,
        Rules,
        Spending,
        float | None,
    ],
    tuple[list[RegionOutput], list[Verdict]],
]
Emit: TypeAlias = Callable[
    [Sequence[BatchState], Iterable[Verdict], Work, Base, Output], Iterator[None]
]

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


class Stages(NamedTuple):
    """What `process` calls, one after the other."""

    dispatch: Dispatch
    fetch: Fetch
    transform: Transform
    emit: Emit


STAGES = Stages(dispatch, fetch, transform, emit)


class Aspect(Protocol):
    """Puts something around a stage, whose arguments and answer stay as they are."""

    def __call__(
        self, name: str, stage: Callable[Arguments, Answer], /
    ) -> Callable[Arguments, Answer]:
        """The stage of this name, with something around it."""


def around(stages: Stages, aspect: Aspect) -> Stages:
    """The stages, each within the aspect. What is put around last sees the rest as its stage."""
    return Stages(
        aspect("dispatch", stages.dispatch),
        aspect("fetch", stages.fetch),
        aspect("transform", stages.transform),
        aspect("emit", stages.emit),
    )


def timed(stages: Stages, note: Callable[[str, float], None]) -> Stages:
    """The stages, which note their name and how many seconds they took after every call.

    They note it too where they raise. What `note` raises would end the batch.
    """

    def aspect(name: str, stage: Callable[Arguments, Answer], /) -> Callable[Arguments, Answer]:
        def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
            began = time.perf_counter()
            try:
                return stage(*arguments, **named)
            finally:
                note(name, time.perf_counter() - began)

        return call

    return around(stages, aspect)
