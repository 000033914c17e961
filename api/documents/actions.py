"""What composite streams ask for when they emit, looked at before a document is accepted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from api.services import Services
from servioticy.domain.documents import BadDocument
from servioticy.domain.documents.actions import AskedAction, check_actions
from servioticy.domain.documents.codes import UNKNOWN_ACTION, UNKNOWN_SERVICE_OBJECT
from servioticy.domain.model import Definition, ServiceObjectKey, Stream, StreamRef


def problems_with_conditions(
    document: dict[str, Any], key: ServiceObjectKey, services: Services
) -> list[BadDocument]:
    """Return what is wrong with the code of conditions. Raises BadDocument for all else."""
    asked = check_actions(document, key.id, services.argument_names)
    found = [each for _, each in asked if each.condition is not None]
    if not found:
        return []
    streams = tuple(
        Stream(StreamRef(key.id, str(number)), each.condition.channels, each.condition)
        for number, each in enumerate(found)
        if each.condition is not None
    )
    problems = services.check(key.tenant, Definition(key.id, streams, (), public=False))
    return [_placed(each, found) for each in problems]


def _placed(problem: BadDocument, conditions: Sequence[AskedAction]) -> BadDocument:
    """Return the problem of a condition, which was looked at as the stream of its number."""
    part = conditions[int(problem.pointer.split("/")[2])].part
    reason = problem.reason.partition("pre-filter: ")[2] or problem.reason
    return part.at("if", words="if").bad(reason, problem.code)


def check_targets(document: dict[str, Any], key: ServiceObjectKey, services: Services) -> None:
    """Raise BadDocument unless all that is asked for is an action of the tenant's own."""
    known: dict[str, set[str] | None] = {}
    for _, asked in check_actions(document, key.id, services.argument_names):
        target = asked.service_object
        if target == key.id:
            continue  # looked at already
        if target not in known:
            known[target] = _actions_of(ServiceObjectKey(key.tenant, target), services)
        actions = known[target]
        if actions is None:
            # Whether there is none, or it is another's, is not told.
            reason = f"you have no Service Object {target!r:.60}"
            raise asked.part.at("serviceObject").bad(reason, UNKNOWN_SERVICE_OBJECT)
        if asked.action not in actions:
            reason = f"{target:.60} does not have the action {asked.action!r:.60}"
            raise asked.part.at("action").bad(reason, UNKNOWN_ACTION)


def _actions_of(key: ServiceObjectKey, services: Services) -> set[str] | None:
    found = services.ports.service_objects.current(key)
    if found is None:
        return None
    return {each["name"] for each in orjson.loads(found.document).get("actions") or ()}
