"""What the supervisor counts."""

from __future__ import annotations

from scraped import samples

from servioticy.metrics import Registry
from servioticy.supervisor.metrics import ProgramMetrics
from servioticy.supervisor.program import Event, EventKind

UP = 'servioticy_program_up{program="api"}'
STARTS = 'servioticy_program_starts_total{program="api"}'


def test_a_program_is_up_while_it_is_ready() -> None:
    registry = Registry(with_process=False)
    programs = ProgramMetrics(registry)
    seen: list[tuple[float, float]] = []
    kinds: list[EventKind] = ["starting", "ready", "exited", "starting", "unresponsive", "stopped"]
    for kind in kinds:
        programs.note(Event("api", kind))
        found = samples(registry.text())
        seen.append((found[UP], found[STARTS]))

    assert seen == [(0, 1), (1, 1), (0, 1), (0, 2), (0, 2), (0, 2)]
