"""Workflows and queues for tests."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from functions.limits import Limits
from servioticy.domain.workflows.model import Workflow
from servioticy.domain.workflows.reading import parse_workflow
from servioticy.ports.atoms import Atom, Queue

CODE = "function(atom) { return atom; }"
LIMITS = Limits(
    instances=4, of_a_tenant=3, lifetime_ms=60_000, visibility_ms=90_000, idle_seconds=0.0
)


def a_document(*names: str, **more: Any) -> dict[str, Any]:
    """A chain of procedures that pass atoms on."""
    chain = ["source", *(names or ("clean",)), "sink"]
    return {
        "source": {"http": {}},
        "procedures": {each: {"code": CODE} for each in chain[1:-1]},
        "links": [list(pair) for pair in pairwise(chain)],
        "sink": {"collect": {}},
        **more,
    }


def a_workflow(*names: str, **more: Any) -> Workflow:
    return parse_workflow(a_document(*names, **more))


def a_queue(tenant: int = 1, workflow: str = "w", version: int = 1, step: int = 0) -> Queue:
    return Queue(tenant, workflow, version, step)


def an_atom(id_: int, attempts: int = 1, body: bytes = b"{}") -> Atom:
    return Atom(id_, 1_000, attempts, body)
