"""Draws from Hypothesis' strategies by plain chance, which costs less.

Hypothesis keeps account of every choice, to find small examples. Of a hundred thousand that
are all to hold nobody needs that: each is made from a number, and who finds one that does
not hold can make it again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NoReturn

from hypothesis.control import BuildContext
from hypothesis.errors import UnsatisfiedAssumption
from hypothesis.strategies._internal.collections import TupleStrategy
from hypothesis.strategies._internal.core import DataStrategy
from hypothesis.strategies._internal.lazy import unwrap_strategies


class Chance:
    """What strategies draw from, as far as those of this project do."""

    frozen = False
    unique_element_depth = 0
    provider = SimpleNamespace(avoid_realization=False)

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self.depth = 1
        self.events: dict[str, Any] = {}

    def draw(self, strategy: Any, label: object = None, observe_as: object = None) -> Any:
        """Return a value of the strategy."""
        found = _unwrapped(strategy)
        if type(found) is TupleStrategy:  # its own way takes five times as long
            return tuple([self.draw(each) for each in found.element_strategies])
        self.depth += 1
        try:
            return found.do_draw(self)
        finally:
            self.depth -= 1

    def draw_integer(
        self, min_value: int | None = None, max_value: int | None = None, **_more: Any
    ) -> int:
        """Return a number; most are small where there are no bounds."""
        low = -(2 ** self._random.randint(0, 64)) if min_value is None else min_value
        high = 2 ** self._random.randint(0, 64) if max_value is None else max_value
        return self._random.randint(low, max(low, high))

    def draw_boolean(self, p: float = 0.5, *, forced: bool | None = None, **_more: Any) -> bool:
        """Return true so often."""
        return self._random.random() < p if forced is None else forced

    def start_span(self, label: int) -> None:
        """Note that something of several parts begins."""
        self.depth += 1

    def stop_span(self, *, discard: bool = False) -> None:
        """Note that it ends."""
        self.depth -= 1

    def mark_invalid(self, why: str | None = None) -> NoReturn:
        """Give this example up."""
        raise UnsatisfiedAssumption(why)

    @contextmanager
    def track_arg_label(self, _label: str) -> Iterator[dict[str, Any]]:
        """Note nothing."""
        yield {}


class _Unnoted(BuildContext):
    """Where nothing is told of how an example was made."""

    def record_call(self, *_args: Any, **_more: Any) -> None:
        pass


class Data:
    """What `st.data()` gives."""

    def __init__(self, chance: Chance) -> None:
        self.draw = chance.draw


_kept: dict[int, tuple[Any, Any]] = {}


def _unwrapped(strategy: Any) -> Any:
    found = _kept.get(id(strategy))
    if found is None or found[0] is not strategy:
        if len(_kept) > 10_000:
            _kept.clear()
        found = _kept[id(strategy)] = strategy, unwrap_strategies(strategy)
        strategy.validate()
    return found[1]


def plainly(test: Any, first: int, count: int, tell: Callable[[int], None]) -> Callable[..., None]:
    """Return a test that tries so many examples from this number on, and tells the number."""
    inner, strategies = test.hypothesis.inner_test, test.hypothesis._given_kwargs

    def run(**fixtures: Any) -> None:
        for number in range(first, first + count):
            tell(number)
            chance = Chance(f"{inner.__name__} {number}")
            try:
                with _Unnoted(chance, wrapped_test=test):  # type: ignore[arg-type]
                    drawn = {
                        name: Data(chance) if isinstance(each, DataStrategy) else chance.draw(each)
                        for name, each in strategies.items()
                    }
                    inner(**drawn, **fixtures)
            except UnsatisfiedAssumption:
                continue
            except BaseException as error:
                error.add_note(f"once more: make property EXAMPLES=1 FIRST={number}")
                raise

    return run
