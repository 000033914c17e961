"""What comes late is stored and sent in turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

from pipeline.batching.beside import Beside
from pipeline.limits import NO_LIMITS
from pipeline.sharing.fairness import Fairness
from pipeline.sharing.shares import Shares
from pipeline.sharing.spending import Spending
from pipeline.work import Work
from servioticy.ports.put_off import TreeKey


def test_nobody_waits_until_much_of_another_is_sent() -> None:
    """What is stored is sent a part at a time; meanwhile what others have is stored, and sent."""
    seen: list[str] = []
    ready = Event()

    def emit(states: Sequence[Any], *_: object) -> Iterator[None]:
        (name, parts) = states[0]
        seen.append(f"{name} stored")
        ready.wait(60)
        for part in range(parts):
            yield
            seen.append(f"{name} {part}")

    partition = SimpleNamespace(
        number=0, store=None, claim=None, counted=0, emitted_offset=0, emitted_late=[]
    )
    engine = SimpleNamespace(stages=SimpleNamespace(emit=emit))
    with ThreadPoolExecutor(1) as thread:
        beside = Beside(
            cast(Any, partition),
            cast(Any, engine),
            Fairness(Shares(0.5)),
            lambda: cast(Any, None),
            thread,
        )
        nothing = Work((), TreeKey(0))
        storing = [
            beside.store(
                nothing,
                [
                    cast(
                        Any,
                        SimpleNamespace(tenant=n, state=state, spending=Spending(NO_LIMITS, 1)),
                    )
                ],
            )
            for n, state in enumerate([("much", 3), ("little", 1)])
        ]
        ready.set()
        for each in storing:
            assert each.sent.result(60) is None

    assert seen == ["much stored", "little stored", "much 0", "little 0", "much 1", "much 2"]
