"""The neighbours of the benchmark are those that the issue names, and are judged by numbers."""

from __future__ import annotations

import pytest

from benchmarks import neighbours
from benchmarks.attacks.arrivals import Waits
from benchmarks.attacks.attack import composite, document
from benchmarks.neighbours.kinds import (
    LITTLE_MS,
    LITTLE_PERIOD_SECONDS,
    NEARLY_MS,
    NEIGHBOURS,
    READERS_MS,
    STEPS,
    crowd_document,
    loop,
)
from benchmarks.neighbours.measure import PHASES, Beside
from sandbox import argument_names
from servioticy.domain.documents import parse_service_object
from servioticy.domain.quotas import quotas
from servioticy.settings import Settings


def beside(before: float, during: float, lost: int = 0, refused: int = 0) -> Beside:
    waits = {phase: Waits(0.001, before, before) for phase in PHASES}
    waits["during"] = Waits(0.001, during, during)
    return Beside(waits, 100, lost, refused, {"PUT 429": 7})


def test_every_neighbour_is_there_and_has_quotas_that_exist() -> None:
    usual = ["flood", "hostile", "just-below", "fan-out", "strangers", "readers", "crowd"]
    assert list(NEIGHBOURS) == usual
    known = quotas(Settings())
    assert all(each.quotas.keys() <= known.keys() for each in NEIGHBOURS.values())


def test_what_a_neighbour_uses_is_as_near_to_its_limits_as_it_says() -> None:
    settings = Settings()

    assert settings.sandbox.budget_ms > NEARLY_MS
    assert settings.limits.max_tree_script_ms > STEPS * NEARLY_MS
    used = LITTLE_MS / 1000 / LITTLE_PERIOD_SECONDS
    assert 0.3 < used < settings.pipeline.tenant_share
    assert settings.limits.max_tree_script_ms > STEPS * READERS_MS


@pytest.mark.parametrize("wanted", [crowd_document(), document({"c": composite(loop(NEARLY_MS))})])
def test_what_neighbours_create_are_documents(wanted: dict[str, object]) -> None:
    parsed = parse_service_object(wanted, "so", argument_names)

    assert any(each.composite for each in parsed.streams)


@pytest.mark.parametrize(
    ("found", "faults"),
    [
        (beside(0.010, 0.012), []),
        (beside(0.010, 0.0121), ["p99 rose by 21 %"]),
        (beside(0.010, 0.010, lost=1, refused=2), ["1 lost", "2 refused"]),
    ],
)
def test_a_fifth_more_is_held_and_a_loss_is_not(found: Beside, faults: list[str]) -> None:
    assert found.faults(0.2) == faults


@pytest.mark.parametrize(("during", "code"), [(0.012, 0), (0.013, 1)])
def test_the_command_fails_where_the_innocent_wait_longer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], during: float, code: int
) -> None:
    """So that it can stand in a script."""

    def measures(*_what: object, yields: bool, checkout: object):
        assert not yields and checkout is None
        return beside(0.010, during)

    monkeypatch.setattr(neighbours, "measure", measures)

    assert neighbours.run(Settings(), ["--only", "flood"]) == code
    shown = capsys.readouterr().out.splitlines()
    assert shown[1].startswith("flood | 1.0 10.0 | 1.0 10.0 | 1.0 ")
    assert "PUT 429 7" in shown[1]
    assert shown[2:] == (["not held: flood"] if code else [])
