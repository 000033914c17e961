"""How many questions of a tenant are open: as many as are left to the others."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from asked_programs import KnownToAll, Whimsical, a_manifest

from pipeline.limits import Limits
from pipeline.state.asking import MAX_OPEN, Asking
from pipeline.state.manifests import AskedPrograms
from servioticy.domain.model import StreamRef
from servioticy.ports.programs import Program


def test_tenants_whose_programs_never_answer_do_not_have_all_questions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four of them leave some to a fifth that comes late."""
    store = SimpleNamespace(to_ask=lambda *_: [])
    partition: Any = SimpleNamespace(store=store, number=0, is_to_ask=True)
    programs = Whimsical(lambda below: below - 1)
    asked = AskedPrograms(programs, KnownToAll({1: a_manifest()}))
    asking = Asking(partition, asked, lambda: 0.0, lambda: 0.0, Limits(9, 9))
    candidates: list[Any] = []

    def ask(_programs: object, each: Any, _question: object) -> bool:
        opened: Any = SimpleNamespace(asked=SimpleNamespace(program=each.program))
        asking._open.setdefault(each.stream, []).append(opened)
        return True

    def come(tenant: int) -> None:
        candidates.extend(
            SimpleNamespace(
                program=Program(tenant, "tried", 1), stream=StreamRef(f"{tenant}", f"{n}")
            )
            for n in range(MAX_OPEN)
        )
        asking._look(programs)

    asking._candidates = candidates
    monkeypatch.setattr(asking, "_forget_all_but", lambda _candidates: None)
    monkeypatch.setattr(asking, "_ask", ask)
    monkeypatch.setattr(asking, "_question", lambda *_: object())
    for tenant in range(1, 6):
        come(tenant)

    opened = [each for chain in asking._open.values() for each in chain]
    assert Counter(each.asked.program.tenant for each in opened) == {
        1: 32,
        2: 16,
        3: 8,
        4: 4,
        5: 2,
    }
    assert max(map(len, asking._open.values())) == 1, "each stream has one before any has two"
