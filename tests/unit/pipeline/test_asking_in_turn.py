"""How many questions of a tenant are open: as many as are left to the others."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from asked_programs import KnownToAll, Whimsical, a_manifest

from pipeline.limits import Limits
from pipeline.state.asking import MAX_OPEN, AskedPrograms, Asking
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

    def ask(_programs: object, each: Any, _manifest: object) -> bool:
        opened: Any = SimpleNamespace(
            asked=SimpleNamespace(program=each.program, id=b"%d" % len(asking._open)),
            answered_at=None,
            is_about=lambda _candidate: True,
        )
        asking._open[each.stream] = opened
        return True

    def come(tenant: int) -> None:
        candidates.extend(
            SimpleNamespace(
                program=Program(tenant, "tried", 1), stream=StreamRef(f"{tenant}", f"{n}")
            )
            for n in range(MAX_OPEN)
        )
        asking._look(programs)

    monkeypatch.setattr(asking, "_candidates", lambda _to_ask: candidates)
    monkeypatch.setattr(asking, "_ask", ask)
    monkeypatch.setattr(asking, "_is_enough", lambda *_: True)
    for tenant in range(1, 6):
        come(tenant)

    has = Counter(each.asked.program.tenant for each in asking._open.values())
    assert has == {1: 32, 2: 16, 3: 8, 4: 4, 5: 2}
