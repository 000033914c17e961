"""What is noted beside an attack: the machine's own lateness, and an attacker that waits."""

from __future__ import annotations

import resource
import time

import pytest

from benchmarks.attacks import idler
from benchmarks.attacks.apart import prepared
from benchmarks.attacks.attacker import Attacker, Place
from benchmarks.attacks.idler import Lateness
from benchmarks.attacks.resting import ATTACKS
from servioticy.settings import Settings


def test_of_the_machine_s_lateness_the_longest_of_a_time_is_told() -> None:
    late = Lateness([(1.0, 0.5), (2.0, 0.02), (3.0, 0.03), (4.0, 0.7)])

    assert late.longest(2.0, 4.0) == pytest.approx(0.03)
    assert late.longest(5.0, 9.0) == 0.0


def test_the_idler_notes_what_kept_it_from_waking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here a sleep that took too long: on a busy machine it is others' work."""

    class Told(Exception):
        """It has told what it found."""

    class Pipe:
        def send(self, found: list[tuple[float, float]]) -> None:
            told.extend(found)
            if told:
                raise Told

    told: list[tuple[float, float]] = []
    sleep = time.sleep
    monkeypatch.setattr(idler.time, "sleep", lambda seconds: sleep(seconds + 0.05))
    monkeypatch.setattr(idler, "TOLD_SECONDS", 0.1)
    with pytest.raises(Told):
        idler._wake(Pipe())

    assert min(late for _due, late in told) > 0.04


def test_an_attack_waits_until_it_is_to_begin() -> None:
    """What the start of its process takes is nobody's attack, and nothing of its time."""
    place = Place(Settings(), "a token")
    with prepared(ATTACKS[0], place, 0.2) as apart:
        time.sleep(0.5)
        assert not apart.is_ready
        assert not apart.is_over()
        began = time.monotonic()
        apart.begin()
        while not apart.is_over():
            time.sleep(0.01)
        took = time.monotonic() - began

    assert apart.is_ready
    assert 0.2 <= took < 5.0
    assert not apart.got


def test_a_full_machine_is_one_of_which_others_take_the_time() -> None:
    """As long as an attack lasts, and no longer: nobody ends its processes."""
    busy = next(each for each in ATTACKS if each.id == "busy")
    before = _of_children()
    busy.run(Attacker(Place(Settings(), "a token"), 0.5), None)

    assert busy.is_control
    assert _of_children() - before > 0.2


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
