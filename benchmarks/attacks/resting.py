"""No attack at all: what an innocent tenant waits for by itself, on this machine, today."""

from __future__ import annotations

import time

from benchmarks.attacks.attack import Attack
from benchmarks.attacks.attacker import Attacker


def _nothing(_attacker: Attacker) -> None:
    return None


def _rest(attacker: Attacker, _nothing: None) -> None:
    time.sleep(attacker.left())


ATTACKS = (Attack("none", "nobody attacks: what comes by itself", _nothing, _rest),)
