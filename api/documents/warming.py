"""Before a document takes the place of another its programs are begun: then nobody waits for them.

The node that will run them is asked, and what it says is waited for. A program that cannot begin,
or does not answer its warm-up, takes over from nobody: the document in force stays.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping

from api.services import Services
from servioticy.domain.model import Definition, ServiceObjectKey
from servioticy.domain.program_code import ProgramCode
from servioticy.errors import Unavailable
from servioticy.ports.programs import Program
from servioticy.ports.stored_programs import Wanted
from servioticy.refusals import Conflict

STEP_SECONDS = 0.005
LONGEST_STEP_SECONDS = 0.1
"""Between two looks for an answer, each a step longer than the one before."""


def warm_up(
    definition: Definition,
    before: Definition,
    owners: Mapping[str, int],
    key: ServiceObjectKey,
    services: Services,
) -> None:
    """Have those programs begun that the document names, and the one in force does not.

    Where nobody computes the partition nobody is asked. Raises Conflict with what is wrong with
    a program, and Unavailable where one is not ready within `change_wait_seconds`: it goes on
    being begun, and who asks again may find it ready.
    """
    new = _programs(definition) - _programs(before)
    node = services.ports.graph.nodes([key.id]).get(key.id) if new else None
    stored = services.ports.programs
    if node is None or not stored.is_listened_to(node.partition):
        return
    asked = []
    for each in sorted(new, key=lambda code: (code.name, code.version)):
        program = Program(key.tenant, each.name, each.version, owners.get(each.owner))
        asked.append(Wanted(secrets.token_hex(8), program))
        stored.want(node.partition, asked[-1])
    until = time.monotonic() + services.settings.requests.change_wait_seconds
    for wanted in asked:
        reason = _answer(wanted, until, services)
        name = f"{wanted.program.name}@{wanted.program.version}"
        if reason is None:
            raise Unavailable(f"{name} is not ready yet: ask again. What was in force still is")
        if reason:
            raise Conflict(f"{name} cannot take over, what was in force still is: {reason}")


def _programs(definition: Definition) -> set[ProgramCode]:
    return {
        each.composite.operator
        for each in definition.streams
        if each.composite is not None and isinstance(each.composite.operator, ProgramCode)
    }


def _answer(wanted: Wanted, until: float, services: Services) -> str | None:
    pause = 0.0
    while (found := services.ports.programs.warmed(wanted)) is None:
        if time.monotonic() >= until:
            return None
        pause = min(pause + STEP_SECONDS, LONGEST_STEP_SECONDS)
        time.sleep(pause)
    return found
