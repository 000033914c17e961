"""`servioticy apply`: makes the platform's documents those of a folder, after showing how."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from command.remote import access, reading
from command.remote.documents import Local, Step, plan, read_folder, resolved
from servioticy.client import Answered, Conflict, Outdated, Rest
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
    _refuse_doubtful(locals_, {name for name, found in every.items() if len(found) > 1})
    ids = {name: found[0] for name, found in every.items() if len(found) == 1}
    own = [ids[each.name] for each in locals_ if each.name in ids]
    found = {each.document["name"]: each for each in reading.read_all(own, parsed, settings)}
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
        if doubtful := sorted({each.name, *each.refers_to()} & several):
            raise ServioticyError(
                f"{each.file}: several Service Objects of yours have the name {doubtful[0]!r}"
            )


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
        if step.found is None:
            ids[step.local.name] = api.create(document)
        else:
            api.change(step.found.id, document, step.found.etag)
    except Conflict:
        raise
    except Outdated as error:
        reason = "somebody has changed it since it was compared; run the same again"
        raise ServioticyError(f"{step.local.file}: {reason}") from error
    except Answered as error:
        raise ServioticyError(f"{step.local.file}: {access.in_words(error)}") from error
    verb = "created" if step.found is None else "changed"
    sys.stdout.write(f"{verb} {step.local.name} {ids[step.local.name]}\n")
    sys.stdout.flush()
