"""Before a document takes the place of another its programs are begun: then nobody waits for them.

The node that will run them is asked, and what it says is waited for. A program that cannot begin,
or does not answer its warm-up, takes over from nobody: the document in force stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial

from api.services import Services
from servioticy.domain.model import Definition, ServiceObjectKey
from servioticy.domain.program_code import ProgramCode
from servioticy.domain.quotas import PROCESSOR_SECONDS
from servioticy.errors import Unavailable
from servioticy.ports.programs import Program
from servioticy.ports.stored_programs import Wanted
from servioticy.refusals import Conflict

STEP_SECONDS = 0.005
LONGEST_STEP_SECONDS = 0.1
"""Between two looks for an answer, each a step longer than the one before."""

AT_ONCE = 8
"""Programs of one document that are begun together."""


def warm_up(
    definition: Definition,
    before: Definition,
    owners: Mapping[str, int],
    key: ServiceObjectKey,
    services: Services,
) -> None:
    """Have those programs begun that the document names, and the one in force does not.

    Where nobody computes the partition nobody is asked, nor for a tenant that has used up its
    processor time. Raises Conflict with what is wrong with a program, and Unavailable where one
    is not ready within `change_wait_seconds`: it goes on being begun, and who asks again may find
    it ready.
    """
    computing, in_force = _programs(definition), _programs(before)
    new = computing.keys() - in_force.keys()
    node = services.ports.graph.nodes([key.id]).get(key.id) if new else None
    stored = services.ports.programs
    if node is None or not stored.is_listened_to(node.partition):
        return
    if services.quotas.metered(key.tenant, PROCESSOR_SECONDS) is not None:
        return  # who has used up its time has none for what nobody asks yet
    until = time.monotonic() + services.settings.requests.change_wait_seconds
    named = sorted(new, key=lambda code: (code.name, code.version))
    for at in range(0, len(named), AT_ONCE):
        codes = named[at : at + AT_ONCE]
        some = [
            Program(key.tenant, each.name, each.version, owners.get(each.owner)) for each in codes
        ]
        asked = [
            (program, stored.want(node.partition, Wanted(program, computing[each])))
            for program, each in zip(some, codes, strict=True)
        ]
        for program, since in asked:
            _wait(program, partial(stored.warmed, node.partition, program, since), until)


def _wait(program: Program, answer: Callable[[], str | None], until: float) -> None:
    """Wait for an answer. Raises Conflict, Unavailable."""
    name, pause = f"{program.name}@{program.version}", 0.0
    while (reason := answer()) is None:
        if time.monotonic() >= until:
            raise Unavailable(f"{name} is not ready yet: ask again. What was in force still is")
        pause = min(pause + STEP_SECONDS, LONGEST_STEP_SECONDS)
        time.sleep(pause)
    if reason:
        raise Conflict(f"{name} cannot take over, what was in force still is: {reason}")


def _programs(definition: Definition) -> dict[ProgramCode, str]:
    """With a stream that each computes."""
    return {
        each.composite.operator: str(each.ref)
        for each in definition.streams
        if each.composite is not None and isinstance(each.composite.operator, ProgramCode)
    }
