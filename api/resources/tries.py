"""Trying a changed document before it is put in force: nothing is stored, and nothing sent."""

from __future__ import annotations

from typing import Any

import orjson
from flask import Blueprint, Response

from api.documents import readers
from api.documents.changing import new_document
from api.documents.service_objects import current, to_stored
from api.documents.trials import Tried, trial
from api.documents.warnings import warnings
from api.http import authentication
from api.http.answers import stored
from api.http.authentication import needs
from api.http.bodies import json_object
from api.http.listening import listening
from api.http.queries import integer
from api.resources.replacing import template_of, who_reads
from api.services import Services
from api.stepping.turns import in_turns
from api.trials.trial import MOST_UPDATES, Trial
from servioticy.domain.access import Right
from servioticy.domain.documents.templates import TEMPLATE
from servioticy.domain.model import Definition, ServiceObjectKey
from servioticy.turns import Turns

LAST = 20
TURN_SECONDS = 20.0
"""So long a step waits for those of others, which take some hundredths of a second each."""


def blueprint(services: Services) -> Blueprint:
    """`POST /{service_object}/try`."""
    routes = Blueprint("tries", __name__)
    turns = Turns(TURN_SECONDS)

    @routes.post("/<service_object>/try")
    @needs(Right.CHANGE)
    def tries(**_names: str) -> Response:
        """Answer with what it would have made of the last updates of what it reads.

        Without the right to read no update is played: then it is looked at as a PUT does.
        """
        body, key = json_object(), authentication.service_object()
        last = integer("last", LAST, 0, MOST_UPDATES)
        asked = authentication.authenticated()
        headers = services.reads.wait(asked.address)
        found = current(key, services)
        before = services.definitions.of(key.id, found.version, found.document)
        body = {name: each for name, each in body.items() if name != TEMPLATE}
        new = new_document(body, key, found, services)
        told = _told(new.body, before, new.definition, key, services)
        tried = Tried(before, new.definition, found.version, last)
        wanted = trial(tried, key, asked.address.scope, services)
        inputs = _inputs(new.definition)
        head = orjson.dumps({"version": found.version, "warnings": told, "inputs": inputs})
        return stored(_joined(head, _played(wanted, turns, services)), 200, headers)

    return routes


def _played(wanted: Trial, turns: Turns, services: Services) -> bytes:
    """Return what the trial tells; what it took of the processor counts as reading."""
    told = b"{}"
    steps = in_turns(services.trials.steps(wanted), turns, wanted.caller, listening())
    for step in steps:
        services.quotas.has_read(wanted.caller, step.seconds)
        told = step.documents or told
    return told


def _inputs(definition: Definition) -> dict[str, list[str]]:
    """Return what each of its composites reads: its execution tree a step long."""
    return {
        each.ref.stream: list(
            dict.fromkeys(str(of) for read in each.composite.inputs for of in read.members)
        )
        for each in definition.streams
        if each.composite is not None
    }


def _joined(head: bytes, rest: bytes) -> bytes:
    """Return two objects as one."""
    return head if rest == b"{}" else head[:-1] + b"," + rest[1:]


def _told(
    body: dict[str, Any],
    before: Definition,
    after: Definition,
    key: ServiceObjectKey,
    services: Services,
) -> list[str]:
    """Return what a PUT would warn of, and why it would be refused."""
    gone = {each.ref.stream for each in before.streams} - {
        each.ref.stream for each in after.streams
    }
    still = services.ports.graph.readers(key.id, gone) if gone else []
    told = [f"a PUT is refused: {who_reads(still, key.tenant)}"] if still else []
    template = template_of(key, services)
    if template is not None:
        told.append(
            f"a PUT is refused without ?detach=true: the Service Object follows the template "
            f"{template}"
        )
    told += readers.of_change(before, after, key, services)
    document = to_stored(body, key.id, 0, 0)
    return told + warnings(after, document, key.tenant, services).get("warnings", [])
