"""A component while it is loaded, slice by slice: its documents, then its graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pipeline.state.weights import weight, weight_of_copy
from servioticy.domain.borders import with_inputs
from servioticy.domain.graph import Graph
from servioticy.domain.model import ServiceObject
from servioticy.domain.patterns import Pattern
from servioticy.domain.pauses import Paused
from servioticy.ports.partition_store import ComponentMember, PartitionStore

ASKED_AT_ONCE = 1000
ASKED_BYTES = 1024 * 1024
"""Service Objects that the store is asked for at once, and bytes of their documents; or one."""

UNKNOWN_BYTES = 32 * 1024
"""Taken for the bytes of a document of which they are not known."""

ASKED_FIRST = 32
"""Of a large component, until it is known how long it takes."""

MAX_SMALL = 20
"""Members of a component that is loaded together with others."""


class Loading:
    """The Service Objects of a component as far as they are loaded, and their graph."""

    def __init__(self, members: Iterable[ComponentMember]) -> None:
        self._left = {each.id: each for each in members}
        self.tenants = {each.id: each.tenant for each in self._left.values()}
        """Whose each member of the component is, by its id."""
        self.loaded: list[ServiceObject] = []
        self.weights: dict[str, int] = {}
        """About how many bytes of memory each of these takes, by its id."""
        self.weight = 0
        """And all of them."""
        self.graph: Graph | None = None
        """Of the whole component, once it is made."""
        self.pattern: Pattern | None = None
        """Or what it is made by, where an equal one is known."""
        self._making: Paused[Graph] | None = None
        self._asked_at_once = ASKED_FIRST

    @property
    def is_complete(self) -> bool:
        """Whether no document is left to load."""
        return not self._left

    @property
    def is_small(self) -> bool:
        """Whether it is loaded together with others."""
        return len(self.tenants) <= MAX_SMALL

    @property
    def left(self) -> Iterable[ComponentMember]:
        """The members whose documents are not loaded yet."""
        return self._left.values()

    def add(self, service_object: ServiceObject) -> None:
        """Note one of them that is loaded."""
        if service_object.id in self._left:
            self.loaded.append(service_object)
            self.weights[service_object.id] = weight(service_object)
            self.weight += self.weights[service_object.id]
            del self._left[service_object.id]

    def end(self) -> None:
        """Note that what is left does not exist."""
        self._left.clear()

    def go_on(self, store: PartitionStore, is_over: Callable[[], bool]) -> list[ServiceObject]:
        """Load until the slice is over, but one at least; what has been loaded."""
        before = len(self.loaded)
        while self._left and (len(self.loaded) == before or not is_over()):
            asked = next(portions(self.left))[: self._asked_at_once]
            had = len(self.loaded)
            for each in store.service_objects(asked):
                self.add(each)
                if is_over():  # the others would be asked for again
                    self._asked_at_once = max(1, len(self.loaded) - had)
                    break
            else:
                self._asked_at_once = min(ASKED_AT_ONCE, 2 * self._asked_at_once)
                for id_ in asked:  # also what was not found
                    self._left.pop(id_, None)
        return self.loaded[before:]

    def make_graph(self, among: Graph, is_over: Callable[[], bool]) -> bool:
        """Work on the graph of what is loaded until the slice is over; whether it is made.

        `among` is the graph that it is to be merged with.
        """
        if len(self.loaded) == 1 and self._making is None:
            self.pattern = among.pattern_of(self.loaded[0])
            if self.pattern is not None:
                self.weight = weight_of_copy(self.loaded[0])
                self.weights = {self.loaded[0].id: self.weight}
                return True
        if self._making is None:
            self._making = among.component([with_inputs(each) for each in self.loaded])
        while self.graph is None:
            try:
                next(self._making)
            except StopIteration as end:
                self.graph = end.value
            else:
                if is_over():
                    return False
        return True


def portions(members: Iterable[ComponentMember]) -> Iterator[list[str]]:
    """Yield the ids of as many as the store is asked for at once."""
    some: list[str] = []
    left = ASKED_BYTES
    for each in members:
        size = each.size or UNKNOWN_BYTES
        if some and (size > left or len(some) >= ASKED_AT_ONCE):
            yield some
            some, left = [], ASKED_BYTES
        some.append(each.id)
        left -= size
    if some:
        yield some
