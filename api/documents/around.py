"""The Service Objects around one: what it is computed from, and what is computed from it.

They are other tenants', too, and as many and as large as those like. A request looks at no
more of them than may be understood in the time of one document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from api.services import Services
from servioticy.domain.documents.stored import Understood
from servioticy.domain.model import Grant, ServiceObject
from servioticy.ports.stream_graph import Related, Relatives

MAX_RELATED = 5000
"""Most Service Objects looked at, the nearest ones."""
MAX_SHARE = 1.0
"""What understanding those that are not known yet may take: as much as a large document."""
MAX_EDGES = 50_000
"""Most subscriptions of all of them; the first alone may have more."""
AT_ONCE = 20
"""Documents fetched together; each may be as large as a body."""


class Around(NamedTuple):
    """As many Service Objects as are looked at, the nearest ones."""

    service_objects: list[ServiceObject]
    complete: bool
    """whether these are all"""


def understood(relatives: Relatives, services: Services) -> Around:
    """Return those that are known or small enough, in the words of the kernel."""
    look, related = _Look(services), relatives.found
    for at in range(0, len(related), AT_ONCE):
        look.at(related[at : at + AT_ONCE])
    return Around(look.found, look.complete and relatives.complete)


class _Look:
    """How much has been looked at."""

    def __init__(self, services: Services) -> None:
        self.found: list[ServiceObject] = []
        self.complete = True
        self._services = services
        self._grants: dict[str, tuple[Grant, ...]] = {}
        self._share = 0.0
        self._edges = 0

    def at(self, related: Sequence[Related]) -> None:
        """Look at these, unless it is too much."""
        self._grants |= self._services.ports.graph.grants([each.id for each in related])
        for each, understood in self._understood(related):
            self._edges += understood.edges
            if self._edges > MAX_EDGES and self.found:
                self.complete = False
                return
            self.found.append(
                ServiceObject(
                    understood.definition,
                    each.tenant,
                    each.version,
                    each.sequence,
                    {},
                    self._grants.get(each.id, ()),
                )
            )

    def _understood(self, related: Sequence[Related]) -> Iterator[tuple[Related, Understood]]:
        definitions = self._services.definitions
        known = {each.id: definitions.known(each.id, each.version) for each in related}
        wanted = [each.key for each in related if known[each.id] is None]
        stored = self._services.ports.service_objects
        documents = stored.documents(wanted) if wanted and self._room else {}
        for each in related:
            found = known[each.id]
            document = documents.get(each.key)
            if found is None and document is not None and self._room:
                found = definitions.understood(each.id, each.version, document)
                self._share += found.share
            if found is not None:
                yield each, found
            elif not self._room:
                self.complete = False  # else it has gone meanwhile

    @property
    def _room(self) -> bool:
        return self._share < MAX_SHARE and self._edges <= MAX_EDGES
