"""`servioticy apply`: makes the platform's documents those of a folder, after showing how."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from command.remote import access, reading, workflows
from command.remote.documents import Local, Step, plan, read_folder, resolved
from servioticy.client import Answered, Conflict, Outdated, Rest, ServiceObject
from servioticy.errors import ServioticyError
from servioticy.settings import Settings

DONE = 0
NOT_DONE = 3
"""There are differences, and they stay: nobody said yes."""


def run(parsed: argparse.Namespace, settings: Settings) -> int:
    """Show the differences, ask, and make them go."""
    locals_ = read_folder(Path(parsed.folder))
    with access.rest(parsed, settings) as api:
        return _run(locals_, api, parsed, settings)


def _run(
    locals_: Sequence[Local], api: Rest, parsed: argparse.Namespace, settings: Settings
) -> int:
    every = access.names(api)
    flows = workflows.named(api) if any(each.is_workflow for each in locals_) else {}
    _refuse_doubtful(locals_, {name for name, found in every.items() if len(found) > 1})
    _refuse_workflows(locals_, flows)
    ids = {name: found[0] for name, found in every.items() if len(found) == 1}
    own = [ids[each.name] for each in locals_ if each.name in ids and not each.is_workflow]
    found = {each.document["name"]: each for each in reading.read_all(own, parsed, settings)}
    found |= {each.name: flows[each.name][0] for each in locals_ if _is_there(each, flows)}
    steps = [each for each in plan(locals_, found, ids) if each.needed()]
    for each in steps:
        sys.stdout.write(each.difference)
    made = sum(each.found is None for each in steps)
    what = (
        f"{made} to create, {len(steps) - made} to change, {len(locals_) - len(steps)} as they are"
    )
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()
    if not steps:
        return DONE
    if parsed.dry_run or not (parsed.yes or _agreed()):
        return NOT_DONE
    _apply(steps, ids, api)
    return DONE


def _refuse_doubtful(locals_: Sequence[Local], several: set[str]) -> None:
    """Raise where it cannot be said which Service Object a name means."""
    for each in locals_:
        own = frozenset() if each.is_workflow else {each.name}
        if doubtful := sorted((each.refers_to() | own) & several):
            raise ServioticyError(
                f"{each.file}: several Service Objects of yours have the name {doubtful[0]!r}"
            )


def _refuse_workflows(
    locals_: Sequence[Local], found: Mapping[str, Sequence[ServiceObject]]
) -> None:
    """Raise where it cannot be said which workflow a name means."""
    for each in locals_:
        if each.is_workflow and len(found.get(each.name, ())) > 1:
            raise ServioticyError(
                f"{each.file}: several workflows of yours are called {each.name!r}"
            )


def _is_there(local: Local, found: Mapping[str, Sequence[ServiceObject]]) -> bool:
    return local.is_workflow and local.name in found


def _agreed() -> bool:
    """Ask whoever sits at the terminal; where nobody does, it is not agreed to."""
    if not sys.stdin.isatty():
        sys.stderr.write("nothing was changed: give --yes, or run it at a terminal\n")
        return False
    sys.stderr.write("apply? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _apply(steps: Sequence[Step], ids: dict[str, str], api: Rest) -> None:
    """Do the steps in their order.

    What others still subscribe to cannot go before they have changed: it is tried again after
    the others, as long as that helps. What is done stays done, so the command may be run again.
    """
    waiting = list(steps)
    while waiting:
        refused: list[tuple[Step, str]] = []
        for step in waiting:
            try:
                _do(step, ids, api)
            except Conflict as error:
                refused.append((step, error.reason))
        if len(refused) == len(waiting):
            step, reason = refused[0]
            raise ServioticyError(f"{step.local.file}: {reason}")
        waiting = [step for step, _ in refused]


def _do(step: Step, ids: dict[str, str], api: Rest) -> None:
    document = resolved(step.local.document, ids)
    try:
        id_ = _stored(step, document, api)
    except Conflict:
        raise
    except Outdated as error:
        reason = "somebody has changed it since it was compared; run the same again"
        raise ServioticyError(f"{step.local.file}: {reason}") from error
    except Answered as error:
        raise ServioticyError(f"{step.local.file}: {access.in_words(error)}") from error
    verb = "created" if step.found is None else "changed"
    if not step.local.is_workflow:
        ids[step.local.name] = id_
    sys.stdout.write(f"{verb} {step.local.name} {id_}\n")
    sys.stdout.flush()


def _stored(step: Step, document: dict[str, Any], api: Rest) -> str:
    """Make it what it is to be, and return its id. Raises Answered."""
    found = step.found
    if step.local.is_workflow:
        if found is None:
            return workflows.create(api, document)
        workflows.change(api, found, document)
        return found.id
    if found is None:
        return api.create(document)
    api.change(found.id, document, found.etag)
    return found.id
