"""What takes too much for a partition is told, and not summed each time that somebody asks."""

from __future__ import annotations

from servioticy.domain.model import ServiceObjectKey
from servioticy.large_components import KNOWN_MS, MOST, LargeComponents
from servioticy.rebalancing import HOUR

KEY, BESIDE, GONE = (ServiceObjectKey(1, each) for each in ("so1", "so2", "gone"))
NOW = 100 * HOUR + HOUR // 2
PASSED_US = 1_500 * HOUR


class Loads:
    """One component, that has used a part of a core."""

    def __init__(self, part: float) -> None:
        self.part = part
        self.asked = 0

    def component_of(self, key: ServiceObjectKey) -> str | None:
        return None if key == GONE else "c"

    def load_of(self, tenant: int, component: str, since: int) -> int:
        assert (tenant, component, since) == (1, "c", 99 * HOUR)
        self.asked += 1
        return int(self.part * PASSED_US)


def test_what_takes_half_of_a_core_is_told() -> None:
    for part, is_told in ((MOST - 0.001, False), (MOST, True), (1.0, True)):
        found = LargeComponents(Loads(part), lambda: NOW).told(KEY)  # type: ignore[arg-type]
        assert bool(found) == is_told
        if is_told:
            assert found["component"]["from"] == 99 * HOUR
            assert abs(found["component"]["busy"] - part) < 0.001


def test_a_component_is_summed_once_a_minute() -> None:
    """For all of its Service Objects; of one that is gone nothing is known."""
    now, loads = [NOW], Loads(0.0)
    large = LargeComponents(loads, lambda: now[0])  # type: ignore[arg-type]
    assert [large.told(each) for each in (KEY, BESIDE, KEY, GONE)] == [{}, {}, {}, {}]
    assert loads.asked == 1

    loads.part, now[0] = 1.0, NOW + KNOWN_MS - 1
    assert large.told(KEY) == {}
    now[0] += 1
    assert "component" in large.told(BESIDE)
    assert loads.asked == 2
