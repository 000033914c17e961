"""A component while it is loaded, slice by slice."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from pipeline.state.weights import weight
from servioticy.domain.model import ServiceObject
from servioticy.ports.partition_store import ComponentMember, PartitionStore

ASKED_AT_ONCE = 32
"""Service Objects that the store is asked for: a document may have a megabyte."""


class Loading:
    """The Service Objects of a component as far as they are loaded."""

    def __init__(self, members: Iterable[ComponentMember]) -> None:
        self.tenants = {each.id: each.tenant for each in members}
        """Whose each member of the component is, by its id."""
        self.loaded: list[ServiceObject] = []
        self.weights: dict[str, int] = {}
        """About how many bytes of memory each of these takes, by its id."""
        self._left = dict.fromkeys(self.tenants)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to load."""
        return not self._left

    @property
    def weight(self) -> int:
        """About how many bytes of memory all takes that is loaded so far."""
        return sum(self.weights.values())

    def add(self, service_object: ServiceObject) -> None:
        """Note one of them that is loaded."""
        if service_object.id in self._left:
            self.loaded.append(service_object)
            self.weights[service_object.id] = weight(service_object)
            del self._left[service_object.id]

    def end(self) -> None:
        """Note that what is left does not exist."""
        self._left.clear()

    def go_on(
        self, store: PartitionStore, seconds: float, clock: Callable[[], float]
    ) -> list[ServiceObject]:
        """Load for about so many seconds, but one at least; what has been loaded."""
        until = clock() + seconds
        new: list[ServiceObject] = []
        while self._left and (not new or clock() < until):
            asked = list(islice(self._left, ASKED_AT_ONCE))
            for each in store.service_objects(asked):
                new.append(each)
                self.weights[each.id] = weight(each)
                self._left.pop(each.id, None)
                if clock() >= until:
                    break
            else:
                for id_ in asked:  # also what was not found
                    self._left.pop(id_, None)
        self.loaded += new
        return new
