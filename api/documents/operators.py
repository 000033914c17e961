"""Whether the programs that a document names are there, and may be used by its tenant."""

from __future__ import annotations

from api.services import Services
from servioticy.domain.documents.codes import UNKNOWN_OPERATOR
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.model import Definition
from servioticy.domain.program_code import OPERATOR, ProgramCode
from servioticy.ports.programs import Program


def check_operators(definition: Definition, tenant: int, services: Services) -> None:
    """Raise BadDocument for the first stream whose program is not. Raises Unavailable."""
    named = {
        each.ref.stream: Program(tenant, code.name, code.version)
        for each in definition.streams
        if each.composite is not None and isinstance(code := each.composite.operator, ProgramCode)
    }
    if not named:
        return
    known = services.ports.programs.found(sorted(set(named.values())))
    for stream, program in named.items():
        if program not in known:
            part = WHOLE.at("streams", stream, words=f"stream {stream}").at(OPERATOR)
            reason = f"there is no version {program.version} of the program {program.name}"
            raise part.bad(f"{reason} that you may use", UNKNOWN_OPERATOR)
