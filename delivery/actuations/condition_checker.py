"""Whether the condition of an action holds: its code runs in the sandbox, as all of tenants'."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from delivery.admission.spending import Spending
from sandbox import InfraError, TookTooLong
from sandbox.trees import Bounds, Call, Event, Grown, Node, Wake
from servioticy.domain.model import Composite, LastUpdate, StreamRef
from servioticy.domain.scripts import Programs, program_name
from servioticy.domain.verdicts import EMITTED, FILTERED
from servioticy.domain.wirings import wiring
from servioticy.errors import SetupError, Unavailable

SECONDS = 10.0
CONDITION, OUTPUT = 0, 1
"""The numbers of the two streams: the condition, as a composite, and what it reads."""


class Sandbox(Protocol):
    """Grows trees of one tenant, in processes that it starts when it is first asked."""

    def grow(self, tenant: str, calls: Sequence[Call], within: float | None = None) -> list[Grown]:
        """Of each call its trees. Raises InfraError, TookTooLong."""

    def cpu_seconds_of(self, tenant: str) -> float:
        """Return the processor seconds that its code has used so far."""

    def close(self) -> None:
        """End every process."""


class Verdict(str):
    """How the computation of a condition ended."""

    @property
    def holds(self) -> bool:
        """Whether the action is asked for."""
        return self == EMITTED

    @property
    def is_fault(self) -> bool:
        """Whether its code is to blame for that it could not be told."""
        return self not in (EMITTED, FILTERED)


class ConditionChecker:
    """Asks the sandbox, whose processes start when the first condition is to be looked at."""

    def __init__(self, make: Callable[[], Sandbox], spending: Spending) -> None:
        """`spending` hears what each condition has taken."""
        self._make = make
        self._spending = spending
        self._sandbox: Sandbox | None = None
        self._programs = Programs()

    def stop(self) -> None:
        """End the sandbox, where there is one."""
        if self._sandbox is not None:
            self._sandbox.close()

    def look(
        self, tenant: int, ref: StreamRef, version: int, code: Composite, output: LastUpdate
    ) -> Verdict:
        """Return how the condition of a version of a stream ended. Blocks.

        Raises Unavailable where nothing can be said at the moment.
        """
        program = self._programs.of(ref, version, code)
        nodes = (Node(code=program, inputs=((OUTPUT,),)), Node((Wake(0, CONDITION, 0),)))
        event = Event(OUTPUT, output.timestamp, output.document, only=0)
        name = program_name(ref, version)
        call = Call(wiring(nodes), (name, ""), [], [[event]], Bounds(1, 1))
        try:
            self._sandbox = self._sandbox or self._make()
            (grown,) = self._grow(self._sandbox, tenant, ref, call)
        except (InfraError, TookTooLong, SetupError) as error:
            raise Unavailable(f"the sandbox cannot look at a condition: {error}") from error
        if not grown.ended:
            raise Unavailable("the sandbox had no time for a condition")
        return Verdict(grown.ended[0].kind)

    def _grow(self, sandbox: Sandbox, tenant: int, ref: StreamRef, call: Call) -> list[Grown]:
        """Charge for it, whatever came of it. Nobody else works in this sandbox meanwhile."""
        before = sandbox.cpu_seconds_of(str(tenant))
        try:
            return sandbox.grow(str(tenant), [call], SECONDS)
        finally:
            after = sandbox.cpu_seconds_of(str(tenant))
            self._spending.note(tenant, ref, round(1e6 * max(0.0, after - before)))
