"""Whether the programs that a document names are there, and may be used by its tenant."""

from __future__ import annotations

from collections.abc import Mapping

from api.services import Services
from servioticy.domain.documents.codes import UNKNOWN_OPERATOR
from servioticy.domain.documents.errors import WHOLE
from servioticy.domain.model import Definition, ServiceObjectKey
from servioticy.domain.program_code import OPERATOR, ProgramCode
from servioticy.ports.programs import Program
from servioticy.ports.service_objects import VersionKey

ANOTHER = (
    "The version in force means a tenant that has this name no more. Who has it now is meant once "
    "a version without it was in force"
)


def check_operators(
    definition: Definition,
    key: ServiceObjectKey,
    services: Services,
    before: int | None = None,
    *,
    again: bool = False,
) -> Mapping[str, int]:
    """Return whom the document means by the names of others whose programs it names.

    These are whom the version before it means by them; and who has the name now, unless it is
    that version that is to be in force `again`. So nobody comes to compute in a document by being
    given the name of one who is gone. Raises BadDocument for the first stream whose program is not
    there, or may not be used, and Unavailable.
    """
    named = {
        each.ref.stream: code
        for each in definition.streams
        if each.composite is not None and isinstance(code := each.composite.operator, ProgramCode)
    }
    if not named:
        return {}
    names = sorted({each.owner for each in named.values()} - {""})
    meant: Mapping[str, int] = {}
    if names and before is not None:
        meant = services.ports.service_objects.operator_owners(VersionKey(*key, before))
    now = services.ports.programs.owners(names) if names and not again else {}
    owners = {name: found for name in names if (found := meant.get(name, now.get(name)))}
    programs = {
        stream: Program(key.tenant, each.name, each.version, owners.get(each.owner))
        for stream, each in named.items()
    }
    known = services.ports.programs.found(list(dict.fromkeys(programs.values())))
    for stream, program in programs.items():
        if program not in known:
            part = WHOLE.at("streams", stream, words=f"stream {stream}").at(OPERATOR)
            reason = f"there is no version {program.version} of the program {program.name}"
            bad = part.bad(f"{reason} that you may use", UNKNOWN_OPERATOR)
            is_another = program.owner not in (None, now.get(named[stream].owner))
            raise bad.hinted(ANOTHER) if is_another and not again else bad
    return owners
