"""What the routes work with, handed to each blueprint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from api.http.idempotency import Idempotency
from api.http.quotas import Quotas
from api.http.read_after_write import ReadAfterWrite
from api.search.searching import Searches
from api.trials.trial import Trials
from ingest.ingest import Ingest
from ingest.parsing.batch_reader import BatchReader
from ingest.parsing.definitions import Definitions
from sandbox.program import Program
from servioticy.bootstrap import Ports
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.service_objects import ArgumentNames
from servioticy.domain.model import Definition
from servioticy.settings import Settings
from servioticy.settings.places import EVERYWHERE, scheme

Check = Callable[[int, Definition], list[BadDocument]]
"""Looks at the snippets of a tenant's new definition; what is wrong with them, each with its
place."""

CheckPrograms = Callable[[int, Sequence[Program]], Sequence[Sequence[str]]]
"""Looks at programs of a tenant; what is wrong with each."""


@dataclass(frozen=True, slots=True)
class Services:
    """Ports, settings, clock, and what is made of them once."""

    ports: Ports
    settings: Settings
    clock: Callable[[], float]
    argument_names: ArgumentNames
    check: Check
    check_programs: CheckPrograms
    definitions: Definitions
    reads: ReadAfterWrite
    searches: Searches
    trials: Trials
    ingest: Ingest
    batches: BatchReader
    quotas: Quotas
    idempotency: Idempotency

    @property
    def base(self) -> str:
        """What addresses in answers begin with, without a slash at the end.

        Never what a request calls us (`Host`). Where we listen on all addresses and have
        not been told our name it is empty: the address then is a path.
        """
        if self.settings.requests.public_url:
            return self.settings.requests.public_url.rstrip("/")
        host = self.settings.host
        if host in EVERYWHERE:
            return ""
        named = f"[{host}]" if ":" in host else host
        return f"{scheme(self.settings)}://{named}:{self.settings.api.port}"

    def now(self) -> int:
        """Return our clock, in milliseconds."""
        return int(self.clock() * 1000)
